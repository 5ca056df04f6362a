"""What a section gives to the page."""

from isoscope.display.page.panel import Chart, Panel, Switch

CHART = Chart("c", "C", {}, {"variant": ["all", "no-sink"], "value": [1, 2]}, "a chart")


def test_a_switch_keeps_the_rows_that_have_its_value():
    assert CHART.rows(variant="no-sink") == [{"variant": "no-sink", "value": 2}]
    assert len(CHART.rows()) == 2


def test_a_chart_without_the_column_does_not_obey():
    assert len(CHART.rows(form="plain")) == 2


def test_a_panel_knows_where_its_switches_stand():
    switch = Switch("variant", "Rows", (("all", "all"), ("no-sink", "no sinks")), "all")
    assert Panel(switches=(switch,)).chosen == {"variant": "all"}
