"""How hard hypothesis tries: 50 examples in `make test`, 1,000 in `make laws`."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    max_examples=50,
    deadline=None,  # two workers share two cores, so a slow example proves nothing
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("laws", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile("default")

TEXT = (
    "the river carries the boats and the boats carry the people of the town",
    "a small fire in the hills was seen from the road before the rain began",
    "nobody knew the number of the house where the old captain kept his maps",
    "in spring the market opens early and the bread is gone before the bells ring",
    "she wrote three letters to the office and never had a word of answer",
    "the engine stopped twice on the bridge and the driver walked the rest of the way",
)


@pytest.fixture(scope="session")
def texts():
    """Return forty different documents of plain words."""
    words = " ".join(TEXT).split()
    return [
        " ".join(
            words[(7 * number + 3 * place) % len(words)] for place in range(9 + number % 14)
        )
        for number in range(40)
    ]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Return the folder of a small random BERT with a real tokenizer of its own words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    words = sorted(set(" ".join(TEXT).split()))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=64,
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=64,
    )
    model = BertModel(config)
    for name, parameter in model.named_parameters():
        if "LayerNorm" in name:  # as trained ones have it; else a direction has no variance
            torch.nn.init.normal_(parameter, 1.0 if name.endswith("weight") else 0.0, 0.3)
    model.save_pretrained(folder)
    return folder
