"""Which sites belong together."""

from isoscope.comparison.matching import matched


def layers(number, family="resid"):
    return [f"{family}.{layer}" for layer in range(number)]


def test_by_name_sites_of_both_are_kept_in_the_order_of_the_first():
    assert matched(["c", "a", "b"], ["b", "c", "d"], "name") == [("c", "c"), ("b", "b")]


def test_by_depth_first_meets_first_and_last_meets_last():
    pairs = matched(["embed", *layers(3)], ["embed", *layers(7)], "depth")
    assert pairs == [
        ("embed", "embed"),
        ("resid.0", "resid.0"),
        ("resid.1", "resid.3"),
        ("resid.2", "resid.6"),
    ]


def test_by_depth_the_deeper_model_may_come_first():
    pairs = matched(layers(7), layers(3), "depth")
    assert pairs == [("resid.0", "resid.0"), ("resid.3", "resid.1"), ("resid.6", "resid.2")]


def test_by_depth_families_do_not_mix_and_heads_go_by_name():
    first = [*layers(2), "attn.0", "q.0.1", "q.1.0"]
    second = [*layers(4), "mlp.0", "q.0.1"]
    assert matched(first, second, "depth") == [
        ("resid.0", "resid.0"),
        ("resid.1", "resid.3"),
        ("q.0.1", "q.0.1"),
    ]


def test_one_layer_meets_the_first():
    assert matched(layers(1), layers(5), "depth") == [("resid.0", "resid.0")]


def test_hundreds_of_layers_are_matched():
    pairs = matched(layers(200), layers(400), "depth")
    assert len(pairs) == 200 and pairs[-1] == ("resid.199", "resid.399")
