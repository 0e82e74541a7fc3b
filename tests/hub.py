"""A hub on this machine, for tests of what fetches models."""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serve(source, commit, directory):
    """The address of a server that answers as the Hugging Face hub would if it had one model, with these files."""
    paths = (path for path in directory.rglob("*") if path.is_file())
    files = {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}
    sums = {name: hashlib.sha1(content).hexdigest() for name, content in files.items()}
    tree = [{"type": "file", "path": name, "size": len(files[name]), "oid": sums[name]} for name in files]
    model = {"id": source, "sha": commit, "siblings": [{"rfilename": name} for name in files]}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("?")[0]
            name = path.removeprefix(f"/{source}/resolve/{commit}/")
            if path in {"/", f"/api/models/{source}/revision/main", f"/api/models/{source}/revision/{commit}"}:
                self.answer(json.dumps(model).encode())
            elif path == f"/api/models/{source}/tree/{commit}":
                self.answer(json.dumps(tree).encode())
            elif name in files:
                self.answer(files[name], ETag=f'"{sums[name]}"')
            else:
                self.answer(b"", 404, **{"X-Error-Code": "RepoNotFound"})

        def do_HEAD(self):
            self.do_GET()

        def answer(self, content, status=200, **headers):
            self.send_response(status)
            for key, value in {"Content-Length": len(content), "X-Repo-Commit": commit, **headers}.items():
                self.send_header(key, str(value))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def log_message(self, *_):
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
