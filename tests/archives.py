"""Archives of the authors' repository, as small as they can be."""

import io
import tarfile

ADDRESS = "https://example.org/archive/0123.tar.gz"
YAML = {
    "config/rollout/alibi/all_content/dclm/bloom.yaml": b"num_layers: 70\n",
    "config/rollout/alibi/no_content/bloom.yaml": b"num_layers: 70\n",
}


def archive(files, folder="position-bias-0123", mode="w:gz", links=()):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as opened:
        for path, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
        for path in links:
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            opened.addfile(member)
    return packed.getvalue()
