"""A chat server that speaks the OpenAI protocol and misbehaves as it is told, in a process of its own.

    python misbehaving_server.py LOG BEHAVIOUR[,BEHAVIOUR...]

It prints its port. The n-th time that one question comes, it does the n-th behaviour (the last one for ever after).
Each request is a line in LOG. The answer to a class is ``happy``, that to a degree is ``4``.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG, BEHAVIOURS = sys.argv[1], sys.argv[2].split(",")
SEEN: dict[str, int] = {}
LOCK = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        request = json.loads(body)
        paints = self.path.endswith("/images/generations")
        question = request["prompt"] if paints else text_of(request)
        key = hashlib.sha256(body).hexdigest()
        with LOCK:
            n = SEEN[key] = SEEN.get(key, 0) + 1
            with open(LOG, "a", encoding="utf-8") as log:
                log.write(json.dumps({"key": key, "n": n, "question": question, "path": self.path}) + "\n")
        text = picture_of(question) if paints else "4" if "scale" in question else "happy"
        getattr(self, "do_" + BEHAVIOURS[min(n, len(BEHAVIOURS)) - 1].replace("-", "_"))(request, text)

    def do_ok(self, request: dict, text: str) -> None:
        if request.get("stream"):
            self.stream([text[:2], text[2:]], finish="stop")
        else:
            self.answer(200, completion(text))

    def do_paint(self, request: dict, text: str) -> None:
        self.answer(200, {"created": 1, "data": [{"b64_json": text}]})

    def do_policy(self, request: dict, text: str) -> None:
        error = {"message": "against our policy", "code": "content_policy_violation"}
        self.answer(400, {"error": error})

    def do_slow(self, request: dict, text: str) -> None:
        time.sleep(0.1)
        self.do_ok(request, text)

    def do_hang(self, request: dict, text: str) -> None:
        time.sleep(8)
        self.close_connection = True

    def do_429(self, request: dict, text: str) -> None:
        self.answer(429, {"error": {"message": "slow down"}}, {"retry-after": "0.05"})

    def do_500(self, request: dict, text: str) -> None:
        self.answer(500, {"error": {"message": "out of memory"}})

    def do_401(self, request: dict, text: str) -> None:
        self.answer(401, {"error": {"message": "wrong key"}})

    def do_404(self, request: dict, text: str) -> None:
        self.answer(404, {"error": {"message": "no such model"}})

    def do_400(self, request: dict, text: str) -> None:
        self.answer(400, {"error": {"message": "picture too large"}})

    def do_malformed(self, request: dict, text: str) -> None:
        self.raw(b'{"id": "x", "choices": [{"mess')

    def do_no_json(self, request: dict, text: str) -> None:
        self.raw(b"<html>gateway</html>", kind="text/html")

    def do_empty(self, request: dict, text: str) -> None:
        self.answer(200, {"id": "x", "object": "chat.completion", "choices": []})

    def do_refuse(self, request: dict, text: str) -> None:
        self.answer(200, completion("I'm sorry, I can't help with identifying people."))

    def do_cut_body(self, request: dict, text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "5000")
        self.end_headers()
        self.wfile.write(b'{"id": "x"')
        self.close_connection = True

    def do_cut_stream(self, request: dict, text: str) -> None:
        self.stream([text[:2]], finish="")

    def stream(self, parts: list[str], finish: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for i, part in enumerate(parts):
            last = finish if i == len(parts) - 1 else ""
            choice = {"index": 0, "delta": {"content": part}, "finish_reason": last or None}
            self.event({"id": "x", "object": "chat.completion.chunk", "choices": [choice]})
        if finish:
            usage = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
            self.event({"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def event(self, value: dict) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def answer(self, status: int, value: dict, headers: dict[str, str] | None = None) -> None:
        self.raw(json.dumps(value).encode(), status=status, headers=headers or {})

    def raw(
        self, body: bytes, *, status: int = 200, kind: str = "application/json", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # a client that was killed or didn't wait
            super().handle()

    def log_message(self, *arguments: object) -> None:
        pass


def text_of(request: dict) -> str:
    return next(p["text"] for p in request["messages"][-1]["content"] if p["type"] == "text")


def picture_of(prompt: str) -> str:
    """A PNG of one colour that depends on the prompt, in base64."""
    import cv2
    import numpy as np

    colour = np.frombuffer(hashlib.sha256(prompt.encode()).digest()[:3], np.uint8)
    picture = np.broadcast_to(colour, (16, 16, 3)).copy()
    return base64.b64encode(cv2.imencode(".png", picture)[1].tobytes()).decode()


def completion(text: str) -> dict:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
