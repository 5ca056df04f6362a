"""Tokenizers, or none rather than a useless one."""

import re

import pytest
import transformers

from isoscope.capture.model.load import load
from isoscope.capture.model.tokenizer import read_tokenizer, tokenizer_files, whole_tokens

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ATOMS = [
    *SPECIAL,
    "C",
    "c",
    "(",
    ")",
    "=",
    "O",
    "Cl",
    "1",
    ">>",
    "[C@@H]",
    "[N+]",
    "N",
    "-",
    ".",
]
# The pattern published with the reaction models, to compare with.
SMILES = re.compile(
    r"(\%\([0-9]{3}\)|\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\||\(|\)|\.|=|#|-|\+|\\|\/|"
    r":|~|@|\?|>>?|\*|\$|\%[0-9]{2}|[0-9])"
)


def read(folder, said, gguf=None):
    return read_tokenizer(folder, gguf, trust=False, say=said)


def test_a_saved_tokenizer_is_read(tiny, said):
    tokenizer = read(tiny("bert"), said)
    assert tokenizer.convert_ids_to_tokens(tokenizer("the cat")["input_ids"])[0] == "[CLS]"
    assert said == []


@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5", "wav2vec2", "whisper"])
def test_without_files_there_is_none_rather_than_one_that_knows_no_words(tiny, said, kind):
    assert read(tiny(kind, tokenizer=False), said) is None
    assert said == []


def test_characters_need_no_file(tmp_path, said):
    transformers.CanineConfig().save_pretrained(tmp_path)
    assert read(tmp_path, said)("ab")["input_ids"][1:3] == [97, 98]
    assert tokenizer_files(tmp_path) == []


def test_bytes_need_no_vocabulary(tmp_path, said):
    transformers.T5Config().save_pretrained(tmp_path)
    transformers.ByT5Tokenizer().save_pretrained(tmp_path)
    assert read(tmp_path, said)("ab")["input_ids"] == [100, 101, 1]


def test_a_broken_tokenizer_is_reported_and_is_none(tiny, said):
    folder = tiny("bert")
    (folder / "tokenizer.json").write_text("{}")
    assert read(folder, said) is None
    assert len(said) == 1
    assert said[0].startswith("warning: no tokenizer can be made of")


def test_a_vocabulary_of_word_pieces_is_berts(tmp_path, said):
    transformers.AlbertConfig().save_pretrained(tmp_path)
    words = [*SPECIAL, "play", "##ing", "##ed", "the"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    tokenizer = read(tmp_path, said)
    assert tokenizer.tokenize("the playing") == ["the", "play", "##ing"]


def test_a_vocabulary_of_whole_tokens_is_looked_up_longest_first(tmp_path, said):
    transformers.AlbertConfig().save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(ATOMS) + "\n")
    tokenizer = read(tmp_path, said)
    assert tokenizer.tokenize("ClC(=O)[C@@H]>>CC") == [
        "Cl", "C", "(", "=", "O", ")", "[C@@H]", ">>", "C", "C",
    ]  # fmt: skip
    assert tokenizer("C Cl")["input_ids"] == tokenizer("CCl")["input_ids"] == [2, 5, 11, 3]
    assert said == ["vocab.txt has no word pieces (##): texts are cut into its longest entries"]


def test_what_is_in_no_entry_is_one_unknown_token():
    tokenizer = whole_tokens(ATOMS)
    assert tokenizer.tokenize("C[Xe]CzzC") == ["C", "[UNK]", "C", "[UNK]", "C"]


def test_special_tokens_have_their_roles():
    tokenizer = whole_tokens(ATOMS)
    assert tokenizer.pad_token_id == 0
    assert tokenizer.unk_token_id == 1
    assert tokenizer("C", return_special_tokens_mask=True)["special_tokens_mask"] == [1, 0, 1]


@pytest.mark.real
@pytest.mark.parametrize("name", ["rxnfp_bert_ft_fp16", "rxnmapper_albert"])
def test_reactions_are_cut_as_their_authors_cut_them(real_models, name, said):
    tokenizer = load(real_models / name, say=said).tokenizer
    reactions = [
        "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F",
        "C1CCOC1.CC(=O)Cl.N[C@@H](Cc1ccccc1)C(=O)O>>CC(=O)N[C@@H](Cc1ccccc1)C(=O)O",
        "BrC%10=CC=CC=C%10.[Xx]>>C/C=C\\Br",
    ]
    for reaction in reactions:
        pieces = SMILES.findall(reaction)
        assert "".join(pieces) == reaction
        known = tokenizer.get_vocab()
        expected = [piece if piece in known else "[UNK]" for piece in pieces]
        assert tokenizer.tokenize(reaction) == expected
        assert tokenizer.tokenize(" ".join(pieces)) == expected
