"""Archives of released numbers from a server that means harm."""

import http.client
import io
import itertools
import urllib.error
import urllib.request

import pytest

from position_bias.released import sources
from tests.archives import ADDRESS, YAML, archive
from tests.refusals import refused


class Answer(io.BytesIO):
    """One byte at a time, for ever."""

    def read1(self, size=-1):
        return b"x"


@pytest.mark.parametrize("seconds", [1, 10, 700])
def test_a_server_that_is_slow_for_ever_is_left_at_the_deadline(monkeypatch, seconds):
    monkeypatch.setattr(urllib.request.OpenerDirector, "open", lambda opener, address, timeout: Answer())
    clock = itertools.count(0, seconds)
    monkeypatch.setattr(sources.time, "monotonic", lambda: next(clock))
    with refused(f"released.source = '{ADDRESS}'", "600 seconds"):
        sources.read(ADDRESS, "0" * 64)
    assert next(clock) <= 600 + 3 * seconds


@pytest.mark.parametrize("to", ["http://example.org/a", "ftp://example.org/a", "HTTP://example.org", "//evil"])
def test_a_redirection_to_anything_but_https_is_not_followed(to):
    request = urllib.request.Request(ADDRESS)
    with pytest.raises(urllib.error.URLError, match="which is not https"):
        sources._OnlyHttps().redirect_request(request, None, 302, "", http.client.HTTPMessage(), to)


@pytest.mark.parametrize(
    "path", ["unwanted.bin", "config/rollout/alibi/notes.txt", "config/empirical/alibi/x.yaml", "../../x.yaml"]
)
def test_members_that_nobody_wants_are_counted(monkeypatch, path):
    monkeypatch.setattr(sources, "LARGEST", 1000)
    packed = archive(YAML | {path: bytes(2000)})
    assert len(packed) < 1000
    with refused(ADDRESS, "1000 bytes"):
        sources.unpack(ADDRESS, packed)


def test_members_without_content_are_counted(monkeypatch):
    monkeypatch.setattr(sources, "MOST_FILES", 50)
    with refused(ADDRESS, "50 files"):
        sources.unpack(ADDRESS, archive(YAML | {f"{n}": b"" for n in range(60)}))
