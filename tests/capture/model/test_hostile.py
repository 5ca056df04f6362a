"""Model folders and GGUF files that are damaged or made to do harm: one clear error each.

`make slow` loads 500 mutated folders and 500 mutated GGUF files, a few always. A failure names
the number of the mutant, which is made again by it.
"""

import json
import math
import pickle
import random
import shutil
import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers

from isoscope.capture.feed import feed_for
from isoscope.capture.model.config import check_counts
from isoscope.capture.model.folder import no_panic
from isoscope.capture.model.gguf_header import read_scalars
from isoscope.capture.model.load import load
from isoscope.errors import IsoscopeError
from isoscope.types import Document

HUGE = 10**9
BERT = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 32,
}  # fmt: skip
ODD = [
    None, True, -1, 0, 1, 7, 10**5, HUGE, 10**30, 0.5, math.inf, "", "x", "\x1b[31m", [], {},
    [1, "a", None], {"a": {"b": []}}, [[]], "mean", "../../etc/passwd",
]  # fmt: skip


# --- folders ------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """Return the folder of a small sentence model with a dense layer."""
    folder = tmp_path_factory.mktemp("sentences") / "model"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.BertConfig(**BERT)
        transformers.BertModel(config).save_pretrained(folder)
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "cat",
        "sat",
        "on",
        "mat",
        "##s",
        "##t",
        "a",
        "b",
        "c",
    ]
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer.from_pretrained(folder).save_pretrained(folder)
    kinds = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"))
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(kinds)
    ]
    write(folder / "modules.json", listed)
    write(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    dense = {"in_features": 32, "out_features": 4, "bias": True}
    write(folder / "2_Dense" / "config.json", dense)
    weights = {"linear.weight": torch.ones(4, 32), "linear.bias": torch.zeros(4)}
    torch.save(weights, folder / "2_Dense" / "pytorch_model.bin")
    whole = {"prompts": {"query": "the "}, "default_prompt_name": "query"}
    write(folder / "config_sentence_transformers.json", whole)
    write(folder / "sentence_bert_config.json", {"max_seq_length": 16})
    return folder


def write(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def change(path, **values):
    write(path, json.loads(path.read_text()) | values)


def use(folder):
    """Load a model and let its feed read a text."""
    loaded = load(folder)
    feed = feed_for(loaded, length=16)
    return feed.prepare(Document("a", "the cat sat on the mat"))


class Evil:
    def __reduce__(self):
        return print, ("it ran",)


def pickled(folder):
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(pickle.dumps(Evil()))


def listed(folder):
    torch.save([torch.ones(4, 32)], folder / "2_Dense" / "pytorch_model.bin")


def other_width(folder):
    change(folder / "2_Dense" / "config.json", in_features=31)
    weights = {"linear.weight": torch.ones(4, 31), "linear.bias": torch.zeros(4)}
    torch.save(weights, folder / "2_Dense" / "pytorch_model.bin")


def config(**values):
    return lambda folder: change(folder / "config.json", **values)


def prompts(**values):
    return lambda folder: change(folder / "config_sentence_transformers.json", **values)


def longer_vocabulary(folder):
    tokens = json.loads((folder / "tokenizer.json").read_text())
    tokens["model"]["vocab"]["cat"] = 4000
    (folder / "tokenizer.json").write_text(json.dumps(tokens))


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (pickled, "a pickle that does more than hold them"),
        (listed, "a list where tensors by name belong"),
        (other_width, "a dense layer for vectors of width 31 after vectors of width 32"),
        (config(num_hidden_layers=HUGE), "1000000000 as num_hidden_layers"),
        (config(text_config={"num_hidden_layers": HUGE}), "1000000000 as num_hidden_layers"),
        (config(vision={"a": {"depths": [2, HUGE]}}), "1000000002 as depths"),
        (config(inner_group_num=9999, num_hidden_groups=9999), "9999 x 9999 layers in groups"),
        (config(conv_dim=[1] * 20_000), "20000 as conv_dim"),
        (config(model_type=["bert"]), "['bert'] as model_type"),
        (prompts(prompts=["query"]), "prompts of kind list"),
        (prompts(prompts={"query": 3}), "a prompt of kind int"),
        (prompts(default_prompt_name="passage"), "no prompt called 'passage'"),
        (
            lambda f: change(f / "sentence_bert_config.json", max_seq_length="16"),
            "'16' as the longest sequence",
        ),
        (
            lambda f: change(f / "1_Pooling" / "config.json", pooling_mode=["sum"]),
            "pooling of mode 'sum'",
        ),
        (longer_vocabulary, "got 4000 from its tokenizer"),
    ],
)
def test_what_is_of_the_wrong_kind_is_one_clear_error(
    sentences, tmp_path, capsys, spoil, problem
):
    folder = shutil.copytree(sentences, tmp_path / "model")
    spoil(folder)
    with pytest.raises(IsoscopeError) as caught:
        use(folder)
    assert problem in caught.value.problem
    assert "it ran" not in capsys.readouterr().out


def test_the_folder_itself_is_read(sentences):
    assert use(sentences) is not None
    assert load(sentences).pooling.max_seq_length == 16


def test_numbers_of_ordinary_models_are_none_too_many():
    check_counts(Path("config.json"), {"num_hidden_layers": 96, "conv_dim": [512] * 7})
    check_counts(Path("config.json"), {"depths": [2, 2, 18, 2], "num_hidden_groups": 1})
    with pytest.raises(IsoscopeError, match="objects within each other"):
        deep = {}
        for _ in range(200):
            deep = {"a": deep}
        check_counts(Path("config.json"), deep)


def test_random_weights_that_cannot_be_made_are_one_error(sentences, tmp_path):
    folder = shutil.copytree(sentences, tmp_path / "model")
    change(folder / "config.json", num_attention_heads=5)
    with pytest.raises(IsoscopeError) as caught:
        load(folder, untrained=True)
    assert caught.value.slug == "model-unreadable"


def test_a_panic_of_the_tokenizer_can_be_caught():
    class PanicException(BaseException):
        pass

    with pytest.raises(ValueError, match="index out of bounds"), no_panic():
        raise PanicException("index out of bounds")
    with pytest.raises(KeyboardInterrupt), no_panic():
        raise KeyboardInterrupt


def mutate_folder(number, seed, folder):
    """Return a copy of a folder with one or two changes."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(seed, folder)
    pick = random.Random(number)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for _ in range(pick.choice((1, 1, 2))):
        path = pick.choice(files)
        if path.suffix == ".json" and pick.random() < 0.7:
            try:
                content = json.loads(path.read_bytes())
            except ValueError:
                continue
            change_leaf(content, pick)
            path.write_text(json.dumps(content))
        else:
            change_bytes(path, pick)
    return folder


def change_leaf(tree, pick):
    while isinstance(tree, dict | list) and tree:
        key = pick.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
        if not isinstance(tree[key], dict | list) or not tree[key] or pick.random() < 0.3:
            if pick.random() < 0.15:
                del tree[key]
            else:
                tree[key] = pick.choice(ODD)
            return
        tree = tree[key]


def change_bytes(path, pick):
    content = bytearray(path.read_bytes())
    for _ in range(pick.choice((1, 4, 40))):
        if content:
            content[pick.randrange(len(content))] = pick.randrange(256)
    if pick.random() < 0.2:
        del content[pick.randrange(len(content) + 1) :]
    path.write_bytes(content)


def failures_of(make, numbers):
    """Return what ended in something else than an error of ours."""
    found = []
    for number in numbers:
        try:
            use(make(number))
        except IsoscopeError as error:
            str(error)
        except (KeyboardInterrupt, SystemExit, pytest.fail.Exception):
            raise
        except BaseException as error:  # also what the tokenizers raise
            found.append(f"{number}: {type(error).__name__}: {str(error)[:200]}")
    return found


def test_some_mutated_folders_are_loaded_or_refused(sentences, tmp_path):
    make = lambda number: mutate_folder(number, sentences, tmp_path / "m")  # noqa: E731
    assert failures_of(make, range(12)) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_five_hundred_mutated_folders_are_loaded_or_refused(sentences, tmp_path, part):
    make = lambda number: mutate_folder(number, sentences, tmp_path / "m")  # noqa: E731
    assert failures_of(make, range(1000 + 100 * part, 1100 + 100 * part)) == []


# --- GGUF files ---------------------------------------------------------------------------
@pytest.fixture(scope="module")
def quantised(tmp_path_factory):
    """Return a GGUF file of a llama with one layer."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    width, heads, hidden, words = 8, 2, 16, 12
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(32)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(words)
    writer.add_tokenizer_model("llama")
    tokens = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"▁{word}" for word in ["the", "cat", "sat", "on", "mat"]),
    ]
    tokens += [chr(97 + n) for n in range(words - len(tokens))]
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * words)
    writer.add_token_types([2, 3, 3, *[1] * (words - 3)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    rng = np.random.default_rng(0)
    shapes = {
        "token_embd": (words, width), "output": (words, width), "output_norm": (width,),
        "blk.0.attn_norm": (width,), "blk.0.ffn_norm": (width,),
        **{f"blk.0.attn_{name}": (width, width) for name in ("q", "k", "v", "output")},
        "blk.0.ffn_gate": (hidden, width), "blk.0.ffn_up": (hidden, width),
        "blk.0.ffn_down": (width, hidden),
    }  # fmt: skip
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", rng.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def mutate_gguf(number, seed, path):
    content, pick = bytearray(seed.read_bytes()), random.Random(number)
    head = 1200  # where the metadata is
    for _ in range(pick.choice((1, 1, 3))):
        at = pick.randrange(head if pick.random() < 0.9 else len(content) - 8)
        if pick.random() < 0.5:
            content[at] = pick.randrange(256)
        else:
            value = pick.choice((0, 1, 9, 2**31, 2**40, 2**63 - 1))
            content[at : at + 8] = struct.pack("<Q", value)
    if pick.random() < 0.1:
        del content[pick.randrange(len(content)) :]
    path.write_bytes(content)
    return path


def test_a_block_count_beyond_all_models_is_refused(quantised, tmp_path):
    content = bytearray(quantised.read_bytes())
    at = content.index(b"llama.block_count") + len("llama.block_count") + 4
    content[at : at + 4] = struct.pack("<I", 2**31)
    (tmp_path / "deep.gguf").write_bytes(content)
    with pytest.raises(IsoscopeError, match=r"2147483648 as llama\.block_count"):
        load(tmp_path / "deep.gguf")


def test_an_array_that_the_file_has_no_room_for_is_refused(tmp_path):
    def file(kind, count, rest=b""):
        key = b"a"
        head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", len(key)) + key
        path = tmp_path / "a.gguf"
        path.write_bytes(head + struct.pack("<IIQ", 9, kind, count) + rest)
        return path

    for kind, count in ((0, 2**40), (8, 2**40), (9, 2**40), (10, 2**62)):
        with pytest.raises(ValueError, match="of which there is no room"):
            read_scalars(file(kind, count))
    nested = struct.pack("<IQ", 9, 1) * 5000
    with pytest.raises(ValueError, match="of which there is no room"):
        read_scalars(file(9, 1, nested))


def test_a_model_that_cannot_be_run_is_one_error_with_its_cause(quantised, tmp_path):
    content = bytearray(quantised.read_bytes())
    at = content.index(b"llama.embedding_length")
    content[at : at + 5] = b"xxxxx"  # a width of the library's own, other than of the weights
    (tmp_path / "odd.gguf").write_bytes(content)
    with pytest.raises(IsoscopeError) as caught:
        use(tmp_path / "odd.gguf")
    assert caught.value.slug == "model-fails"
    assert "cannot run odd on a short input: RuntimeError" in caught.value.problem
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_the_gguf_file_itself_is_read(quantised):
    assert use(quantised) is not None


def test_some_mutated_gguf_files_are_loaded_or_refused(quantised, tmp_path):
    make = lambda number: mutate_gguf(number, quantised, tmp_path / "m.gguf")  # noqa: E731
    assert failures_of(make, range(12)) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_five_hundred_mutated_gguf_files_are_loaded_or_refused(quantised, tmp_path, part):
    make = lambda number: mutate_gguf(number, quantised, tmp_path / "m.gguf")  # noqa: E731
    assert failures_of(make, range(1000 + 100 * part, 1100 + 100 * part)) == []
