"""CPU models: the strings of real jobs and benchmark tables, and what any string may do to the resolver."""

import csv
import gzip
import json
import os
import re
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.records.names.cpu_models import RESOLVER_VERSION, CpuModel, resolve, resolve_names

DATA = Path(__file__).parents[3].parent / "shared" / "data"


def _data(relative: str) -> Path:
    """A real data file; away from where the data lives the test is skipped, on CI it fails."""
    path = DATA / relative
    if not path.exists():
        message = f"real data missing: {path}; put the shared data folder beside the checkout"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path


def _column(relative: str, column: str, delimiter: str = ",") -> list[str]:
    path = _data(relative)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        return [row[column] for row in csv.DictReader(lines, delimiter=delimiter)]


def _tables() -> dict[str, list[str]]:
    """The distinct CPU strings of each real table, by table, in order of appearance."""
    markdown = _data("hepix-scores/HS06_sl6_x86_64_gcc44.md").read_text(encoding="utf-8")
    nodes = json.loads(_data("gridka-nodes/nodes_2018-03.json").read_text(encoding="utf-8"))
    tables = {
        "evgen": _column("atlas-speed-factors/cpu_speed_factors_evgen.tsv", "cputype", "\t"),
        "two_fits": _column("atlas-speed-factors/cpu_speed_factors_two_fits.tsv", "cputype", "\t"),
        "task_rows": _column("atlas-speed-factors/task_site_cpu_rows.tsv", "cputype", "\t"),
        "hs06": _first_cells("atlas-speed-factors/HS06.txt"),
        "hs06_ref": _first_cells("atlas-speed-factors/HS06_ref.txt"),
        "hs06_page": re.findall(r"^\|\s+((?:Intel|AMD)[^|]+?)\s+\|", markdown, re.MULTILINE),
        "hs23": _column("hepix-scores/HS23scores.csv", "CPU"),
        "probes": _column("hepix-scores/jobprobes_withHS23.csv", "CPU"),
        "gridka": _column("gridka-nodes/gridka-benchmarks-2017.csv.gz", "cpu model")
        + [node["name"] for node in nodes],
    }
    return {table: list(dict.fromkeys(strings)) for table, strings in tables.items()}


def _first_cells(relative: str) -> list[str]:
    return [line.split(",")[0] for line in _data(relative).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def tables() -> dict[str, list[str]]:
    return _tables()


@pytest.fixture(scope="module")
def names(tables: dict[str, list[str]]) -> dict[str, set[str]]:
    """The canonical names of each table."""
    return {table: {n for n in resolve_names(strings) if n} for table, strings in tables.items()}


def _name(raw: str) -> str | None:
    model = resolve(raw)
    return None if model is None else model.name


class TestRealTables:
    def test_every_string_but_the_missing_one_resolves(self, tables: dict[str, list[str]]) -> None:
        unresolved = {raw for strings in tables.values() for raw in strings if resolve(raw) is None}
        assert unresolved == {"not_available"}

    def test_counts_of_strings_and_models(
        self, tables: dict[str, list[str]], names: dict[str, set[str]]
    ) -> None:
        measured = {table: (len(tables[table]), len(names[table])) for table in tables}
        assert measured == {
            "evgen": (81, 73),
            "two_fits": (77, 70),
            "task_rows": (17, 17),
            "hs06": (81, 81),
            "hs06_ref": (81, 81),
            "hs06_page": (78, 78),
            "hs23": (126, 126),
            "probes": (176, 175),
            "gridka": (10, 10),
        }

    def test_strings_merge_only_where_padding_and_cache_differ(self, tables: dict[str, list[str]]) -> None:
        """An independent, cruder key: whatever shares a name shares all letters and digits but the cache."""
        spellings: dict[str, set[str]] = defaultdict(set)
        for raw in [*tables["evgen"], *tables["two_fits"]]:
            name = _name(raw)
            assert name is not None
            text = re.sub(r"\d+ KB$", "", raw).lower()
            spellings[name].add(re.sub(r"[^a-z0-9]", "", text))
        assert {name: keys for name, keys in spellings.items() if len(keys) > 1} == {}

    @pytest.mark.parametrize(
        ("table", "other", "joined"),
        [
            ("evgen", "two_fits", 69),
            ("evgen", "hs06", 73),
            ("two_fits", "hs06", 70),
            ("evgen", "hs06_page", 32),
            ("evgen", "hs23", 13),
            ("evgen", "probes", 37),
            ("hs23", "probes", 74),
            ("hs23", "hs06_page", 19),
            ("gridka", "hs06_page", 8),
            ("gridka", "hs23", 6),
        ],
    )
    def test_models_found_in_both_tables(
        self, names: dict[str, set[str]], table: str, other: str, joined: int
    ) -> None:
        assert len(names[table] & names[other]) == joined

    def test_expected_pairs_across_tables(self, names: dict[str, set[str]]) -> None:
        assert {
            "Intel Xeon E5-2650 v2",
            "Intel Xeon E5-2670",
            "Intel Xeon E5520",
            "Intel Xeon E5-2660 v3",
        } <= (names["evgen"] & names["hs23"] & names["probes"])
        assert {"AMD Opteron 6168", "AMD Opteron 6274", "Intel Xeon E5-2670 v2", "Intel Xeon X5650"} <= (
            names["evgen"] & names["hs06_page"]
        )
        assert {"AMD EPYC 7302", "Intel Xeon Gold 6230", "Intel Xeon Platinum 8468"} <= names["hs23"]

    def test_virtual_names_of_the_tables(self, tables: dict[str, list[str]]) -> None:
        models = {resolve(raw) for strings in tables.values() for raw in strings}
        assert {model.name for model in models if model is not None and model.virtual} == {
            "AMD EPYC Processor (with IBPB)",
            "Intel Core Processor (Haswell, no TSX)",
            "Intel Core Processor (Haswell, no TSX, IBRS)",
            "Intel Core i7 9xx (Nehalem Class Core i7)",
            "Intel Xeon E312xx (Sandy Bridge)",
            "QEMU Virtual CPU version (cpu64-rhel6)",
            "QEMU Virtual CPU version 2.5+",
            "Westmere E56xx/L56xx/X56xx (Nehalem-C)",
        }

    def test_what_pilots_add_leaves_the_name_alone(self, tables: dict[str, list[str]]) -> None:
        for raw in (raw for strings in tables.values() for raw in strings):
            if raw.endswith(("...", "GHz137.")):
                continue
            for cores, smt, sockets in [(8, False, 1), (64, True, 2)]:
                written = resolve("s+" + _as_a_pilot_writes(raw.removeprefix("s+"), cores, smt, sockets))
                model = resolve(raw)
                assert (written is None) == (model is None)
                if written is None or model is None:
                    continue
                assert (written.name, written.virtual) == (model.name, model.virtual)
                assert (written.sockets, written.smt, written.flags) == (sockets, smt, ("AVX2",))
                assert written.cores == (cores if "Eight-Core" not in raw else 8)

    def test_canonical_names_resolve_to_themselves(self, names: dict[str, set[str]]) -> None:
        for name in set().union(*names.values()):
            assert _name(name) == name


def _as_a_pilot_writes(model: str, cores: int, smt: bool, sockets: int) -> str:
    """What a pilot makes of a /proc/cpuinfo name: its core count put before, or in place of, a word of it."""
    if "-Core Processor" in model:
        found = re.search(r"(\d+)-Core Processor", model)
        text = model.replace(f"{found[1]}-Core", f"{cores}-Core") if found else model
    elif "Core Processor" in model:
        text = model.replace("Core", f"{cores}-Core")
    elif "Processor" in model:
        text = model.replace("Processor", f"{cores}-Core Processor")
    else:
        text = f"{model} {cores}-Core Processor"
    return f"{text}{' HT' if smt else ''} {sockets}-Socket{'s' if sockets > 1 else ''}+AVX2"


class TestNames:
    @pytest.mark.parametrize(
        ("raw", "name"),
        [
            ("s+Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz 20480 KB", "Intel Xeon E5-2650 v2"),
            ("s+Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz 4096 KB", "Intel Xeon E5-2650 v2"),
            ("Intel Xeon E5-2650v2", "Intel Xeon E5-2650 v2"),
            ("INTEL XEON E5-2650 V2", "Intel Xeon E5-2650 v2"),
            ("Xeon E5-2650L v3", "Intel Xeon E5-2650L v3"),
            ("E5-2697Av4", "Intel Xeon E5-2697A v4"),
            ("s+Intel(R) Xeon(R) CPU E5-2650 0 @ 2.00GHz 20480 KB", "Intel Xeon E5-2650"),
            ("s+Intel(R) Xeon(R) CPU           X5660  @ 2.80...", "Intel Xeon X5660"),
            ("Intel(R) Xeon(R) CPU           E5540  @ 2.53GHz137.", "Intel Xeon E5540"),
            ("s+Intel(R) Xeon(R) CPU            5150  @ 2.66GHz 4096 KB", "Intel Xeon 5150"),
            ("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", "Intel Xeon Gold 6230"),
            ("INTEL(R) XEON(R) GOLD 6530", "Intel Xeon Gold 6530"),
            ("INTEL(R) XEON(R) PLATINUM 8592++AVX2", "Intel Xeon Platinum 8592+"),
            ("Intel (R) Xeon (R) CPU Max 9462", "Intel Xeon Max 9462"),
            ("Intel® Xeon® Silver 4114", "Intel Xeon Silver 4114"),
            ("Intel(R) Xeon(R) w5-2455X", "Intel Xeon w5-2455X"),
            ("Intel(R) Xeon Phi(TM) CPU 7210 @ 1.30GHz", "Intel Xeon Phi 7210"),
            ("s+Intel(R) Core(TM)2 Quad CPU    Q8300  @ 2.50GHz 2048 KB", "Intel Core 2 Quad Q8300"),
            ("13th Gen Intel(R) Core(TM) i7-13700K", "Intel Core i7-13700K"),
            ("Pentium(R) Dual-Core CPU E5300 @ 2.60GHz", "Intel Pentium E5300"),
            ("s+AMD Opteron(TM) Processor 6276                  512 KB", "AMD Opteron 6276"),
            ("s+Dual-Core AMD Opteron(tm) Processor 2216 1024 KB", "AMD Opteron 2216"),
            ("AMD EPYC 7302 16-Core Processor", "AMD EPYC 7302"),
            ("AMD EPYC 7302P 16-Core Processor", "AMD EPYC 7302P"),
            ("AMD EPYC 7V12 64-Core Processor", "AMD EPYC 7V12"),
            ("AMD Ryzen 7 1700 Eight-Core Processor", "AMD Ryzen 7 1700"),
            ("AMD Ryzen Threadripper PRO 5995WX 64-Cores", "AMD Ryzen Threadripper PRO 5995WX"),
            ("Neoverse-N1", "ARM Neoverse-N1"),
            ("Neoverse-N1 - Ampere(R) Altra(R) Max Processor", "Ampere Altra Max"),
            ("Neoverse-N1 - Ampere(R) Altra(R) Max Processor M128-30 3.00GHz", "Ampere Altra Max M128-30"),
            ("Cortex-X925 Cortex-A725", "ARM Cortex-X925 Cortex-A725"),
            ("Westmere E56xx/L56xx/X56xx (Nehalem-C)", "Westmere E56xx/L56xx/X56xx (Nehalem-C)"),
        ],
    )
    def test_canonical(self, raw: str, name: str) -> None:
        assert _name(raw) == name

    def test_clock_names_a_model_only_where_nothing_else_does(self) -> None:
        assert _name("s+Intel(R) Xeon(TM) CPU 3.20GHz 2048 KB") == "Intel Xeon 3.20GHz"
        assert _name("Intel(R) Xeon(TM) CPU 2.80GHz") == "Intel Xeon 2.80GHz"
        assert _name("Intel(R) Pentium(R) 4 CPU 3.00GHz") == "Intel Pentium 4 3.00GHz"
        assert _name("Intel Xeon E5-2650 2000 MHz") == "Intel Xeon E5-2650"

    def test_a_number_hidden_by_the_hypervisor_is_virtual(self) -> None:
        model = resolve("Intel(R) Xeon(R) CPU @ 2.20GHz")
        assert model == CpuModel("Intel Xeon @ 2.20GHz", "Intel", virtual=True, clock_ghz=2.2)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Intel Xeon E5-2650 v2", "Intel Xeon E5-2650 v3"),
            ("Intel Xeon E5-2650", "Intel Xeon E5-2650 v2"),
            ("Intel Xeon E5-2650L v2", "Intel Xeon E5-2650 v2"),
            ("Intel Xeon Gold 6130", "Intel Xeon Gold 6130F"),
            ("Intel Xeon Platinum 8592", "Intel Xeon Platinum 8592+"),
            ("Intel Xeon X5650", "Intel Xeon L5640"),
            ("Intel Xeon E5645", "Intel Xeon X5645"),
            ("Intel Xeon W-2455X", "Intel Xeon w5-2455X"),
            ("AMD EPYC 7702", "AMD EPYC 7702P"),
            ("AMD EPYC 7302", "AMD EPYC Processor"),
            ("AMD Opteron 240", "AMD Opteron 240 (Gen 1 Class Opteron)"),
            ("Intel Core Processor (Haswell)", "Intel Core Processor (Haswell, no TSX)"),
            ("QEMU Virtual CPU version 2.5+", "QEMU Virtual CPU version 1.5.3"),
        ],
    )
    def test_different_models_stay_apart(self, one: str, other: str) -> None:
        assert _name(one) is not None
        assert _name(one) != _name(other)

    @pytest.mark.parametrize(
        "raw",
        [
            "QEMU Virtual CPU version 2.5+",
            "Common KVM processor",
            "Intel Xeon E312xx (Sandy Bridge)",
            "Intel Core Processor (Haswell, no TSX)",
            "Intel Xeon Processor (Skylake, IBRS)",
            "Intel Xeon E3-12xx v2 (Ivy Bridge, IBRS)",
            "Intel Celeron_4x0 (Conroe/Merom Class Core 2)",
            "AMD EPYC Processor",
            "AMD EPYC-Milan Processor",
            "AMD Opteron 63xx class CPU",
        ],
    )
    def test_virtual_names_keep_their_own_words(self, raw: str) -> None:
        model = resolve(f"s+{raw} 4096 KB")
        assert model is not None
        assert (model.name, model.virtual, model.cache_kb) == (raw, True, 4096)

    def test_a_cpu_without_a_rule_keeps_its_cleaned_name(self) -> None:
        model = resolve("s+FooBar(TM)   9000 CPU @ 3.00GHz 1024 KB")
        assert model == CpuModel("FooBar 9000 CPU", clock_ghz=3.0, cache_kb=1024)
        assert _name("Intel Icelake") == "Intel Icelake"

    @pytest.mark.parametrize(
        "raw",
        [
            None, "", " ", "s", "s+", "seconds", "UNKNOWN", "s+UNKNOWN", "None", "null", "NaN", "N/A", "-",
            "not_available", "s+UNKNOWN 32-Core Processor HT 2-Sockets+AVX2", "ARM", "aarch64", "x86_64",
            "s+ARM 80-Core Processor 1-Socket", "ARMv8 Processor rev 1 (v8l)", "Intel", "AMD EPYC",
            "Intel(R) Xeon(R) CPU", "CPU", "Processor 0", "Genuine Intel(R) CPU 0000 @ 2.40GHz",
            "Intel(R) Xeon(R) CPU E5-26...", "hello world", "12345", "someone@example.org",
            "<script>alert(1)</script>",
        ],
    )  # fmt: skip
    def test_nothing_that_names_a_model(self, raw: str | None) -> None:
        assert resolve(raw) is None

    def test_details(self) -> None:
        assert resolve(
            "Intel(R) Xeon(R) CPU E5-2683 v4 @ 2.10GHz 40960 KB 32-Core Processor HT 2-Sockets+AVX2"
        ) == (
            CpuModel(
                "Intel Xeon E5-2683 v4",
                "Intel",
                cache_kb=40960,
                clock_ghz=2.1,
                cores=32,
                sockets=2,
                smt=True,
                flags=("AVX2",),
            )
        )
        assert resolve("Intel Xeon Gold 6130 (HT off)") == CpuModel(
            "Intel Xeon Gold 6130", "Intel", smt=False
        )
        silver = resolve("Intel(R) Xeon(R) Silver 4114 CPU @ 2.20GHz 20-Core Processor 2-Socket(s)")
        assert silver is not None
        assert (silver.sockets, silver.smt, silver.cores) == (2, False, 20)


class TestAnyString:
    FRAGMENTS = (
        "s+", "Intel(R)", "Intel", "AMD", "Xeon(R)", "Xeon", "CPU", "Processor", "16-Core Processor",
        "8-Core", "Core", "Core(TM)2", "i7-9xx", "E5-2650", "v2", "V3", "0", "Gold", "6130F", "EPYC",
        "EPYC-Rome", "7302", "@", "2.60GHz", "2600 MHz", "20480 KB", "HT", "no HT", "2-Sockets", "+AVX2", "+",
        "(Haswell, no TSX)",
        "(TM)", "...", "QEMU", "KVM processor", "class", "Neoverse-N1", "-", "Ampere(R) Altra(R)", "ARM",
        "UNKNOWN", "Genuine", "Dual-Core", "13th Gen", "Cortex a72", "Pentium(R) 4", "E312xx", "\t", "\x00",
        "®", "ſ", "ß9", "१२३",
    )  # fmt: skip
    STRINGS = st.one_of(
        st.text(max_size=80),
        st.lists(st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(["", " ", "   "])), max_size=9).map(
            lambda parts: "".join(word + gap for word, gap in parts)
        ),
    )

    @given(STRINGS)
    def test_names_stand_for_themselves(self, raw: str) -> None:
        model = resolve(raw)
        if model is not None:
            again = resolve(model.name)
            assert again is not None
            assert (again.name, again.vendor, again.virtual) == (model.name, model.vendor, model.virtual)
            assert model.name == " ".join(model.name.split())

    @given(STRINGS, st.sampled_from(["", " ", "\t", "   \n"]), st.sampled_from(["", " ", "\r\n", "    "]))
    def test_padding_means_nothing(self, raw: str, before: str, after: str) -> None:
        assert resolve(before + raw + after) == resolve(raw)

    @given(st.sampled_from([c for c in range(0x110000) if chr(c).isspace()]))
    def test_any_white_space_separates(self, code: int) -> None:
        assert _name(f"Intel{chr(code)}Xeon{chr(code)}X5650") == "Intel Xeon X5650"

    def test_long_strings_are_refused(self) -> None:
        assert resolve("Intel Xeon X5650 " + "@" * 10_000_000) is None
        assert resolve("Intel Xeon X5650".ljust(301)) is None
        assert _name("Intel Xeon X5650".ljust(300)) == "Intel Xeon X5650"

    @pytest.mark.parametrize(
        "piece", ["+a", "(", "1", "Intel ", "-Core ", "9 ", "+", ".", "(r", "E5-2650v", "x", "x1"]
    )
    def test_no_pattern_blows_up(self, piece: str) -> None:
        model = resolve((piece * 300)[:300])
        assert model is None or 0 < len(model.name) <= 320

    def test_a_million_jobs_of_few_models(self) -> None:
        raws = [f"s+Intel(R) Xeon(R) CPU E5-{1000 + n} v2 @ 2.60GHz 20480 KB" for n in range(500)] * 2000
        names = resolve_names(raws)
        assert len(names) == 1_000_000
        assert names[:1] == ["Intel Xeon E5-1000 v2"]


def test_order_and_missing_are_kept() -> None:
    assert resolve_names(["UNKNOWN", "Intel Xeon X5650", None]) == [None, "Intel Xeon X5650", None]
    assert resolve_names([]) == []


def test_version_moves_with_the_rules() -> None:
    assert re.fullmatch(r"\d+-[0-9a-f]{8}", RESOLVER_VERSION)
