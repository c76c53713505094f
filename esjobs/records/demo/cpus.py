"""CPU models of the made-up grid and the strings under which jobs report them.

The speeds are close to public per-core scores of each model but belong to the made-up grid alone: they are
the truth that a fit has to find again, not a reference for real machines.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class CpuModel:
    """A CPU model of the grid.

    ``label``: the name as the operating system spells it. ``host_cores``: cores of a host. ``speed``: HS06
    per core that a job gets.
    """

    label: str
    cache_kb: int
    host_cores: int
    smt: bool
    avx2: bool
    speed: float

    @property
    def name(self) -> str:
        """The name without padding.

        >>> CpuModel("Intel(R) Xeon(R) CPU           X5650  @ 2.67GHz", 12288, 12, True, False, 8.7).name
        'Intel(R) Xeon(R) CPU X5650 @ 2.67GHz'
        """
        return " ".join(self.label.split())

    @property
    def raw(self) -> tuple[str, str]:
        """Strings that jobs report: by older pilots, by newer pilots.

        >>> CpuModel("AMD EPYC 7302 16-Core Processor", 512, 32, True, True, 15.2).raw
        ('s+AMD EPYC 7302 16-Core Processor 512 KB',
         's+AMD EPYC 7302 16-Core Processor 512 KB HT 2-Socket(s)+AVX2')
        """
        older = f"s+{self.label} {self.cache_kb} KB"
        cores = "" if "-Core Processor" in self.label else f" {self.host_cores}-Core Processor"
        threads = " HT" if self.smt else ""
        # newer pilots append cores, threads, sockets and instruction sets
        return older, f"{older}{cores}{threads} 2-Socket(s){'+AVX2' if self.avx2 else ''}"


def _xeon(label: str, cache_kb: int, host_cores: int, speed: float, *, avx2: bool) -> CpuModel:
    return CpuModel(f"Intel(R) Xeon(R) {label}", cache_kb, host_cores, smt=True, avx2=avx2, speed=speed)


def _epyc(label: str, host_cores: int, speed: float) -> CpuModel:
    return CpuModel(f"AMD EPYC {label} Processor", 512, host_cores, smt=True, avx2=True, speed=speed)


def _opteron(label: str, cache_kb: int, host_cores: int, speed: float) -> CpuModel:
    return CpuModel(f"AMD Opteron({label}", cache_kb, host_cores, smt=False, avx2=False, speed=speed)


CPU_MODELS: tuple[CpuModel, ...] = (
    _xeon("CPU E5-2650 v2 @ 2.60GHz", 20480, 16, 11.2, avx2=False),
    _epyc("7302 16-Core", 32, 15.3),
    _xeon("Gold 6130 CPU @ 2.10GHz", 22528, 32, 12.4, avx2=True),
    CpuModel("QEMU Virtual CPU version 2.5+", 16384, 8, smt=False, avx2=False, speed=9.3),
    _opteron("TM) Processor 6276                 ", 2048, 32, 7.6),
    _xeon("CPU E5-2630 v3 @ 2.40GHz", 20480, 16, 11.5, avx2=True),
    _epyc("7452 32-Core", 64, 13.6),
    _xeon("CPU E5-2680 v4 @ 2.40GHz", 35840, 28, 12.0, avx2=True),
    _xeon("CPU           X5650  @ 2.67GHz", 12288, 12, 8.7, avx2=False),
    _xeon("Silver 4216 CPU @ 2.10GHz", 22528, 32, 12.9, avx2=True),
    _epyc("7713 64-Core", 128, 14.5),
    _xeon("CPU E5-2660 0 @ 2.20GHz", 20480, 16, 9.8, avx2=False),
    _xeon("CPU E5-2650 v3 @ 2.30GHz", 25600, 20, 11.1, avx2=True),
    _xeon("Gold 6248 CPU @ 2.50GHz", 28160, 40, 13.8, avx2=True),
    _epyc("7351 16-Core", 32, 11.9),
    _xeon("CPU E5-2640 v4 @ 2.40GHz", 25600, 20, 11.7, avx2=True),
    _xeon("Gold 6326 CPU @ 2.90GHz", 24576, 32, 16.6, avx2=True),
    _epyc("7742 64-Core", 128, 13.1),
    _xeon("CPU           E5645  @ 2.40GHz", 12288, 12, 7.9, avx2=False),
    _xeon("CPU E5-2697 v3 @ 2.60GHz", 35840, 28, 12.2, avx2=True),
    _opteron("tm) Processor 6378", 2048, 32, 8.6),
    _epyc("7543 32-Core", 64, 17.4),
    _xeon("CPU E5-2670 0 @ 2.60GHz", 20480, 16, 10.9, avx2=False),
    _xeon("Silver 4114 CPU @ 2.20GHz", 14080, 20, 11.4, avx2=True),
    _xeon("CPU E5-2630 v4 @ 2.20GHz", 25600, 20, 10.7, avx2=True),
    _epyc("7313 16-Core", 32, 17.9),
    _xeon("Gold 5218 CPU @ 2.30GHz", 22528, 32, 13.2, avx2=True),
    _xeon("CPU E5-2620 v2 @ 2.10GHz", 15360, 12, 9.9, avx2=False),
    _xeon("CPU E5-2683 v4 @ 2.10GHz", 40960, 32, 10.9, avx2=True),
    _epyc("9654 96-Core", 192, 18.8),
    _xeon("Gold 6140 CPU @ 2.30GHz", 25344, 36, 12.7, avx2=True),
    _xeon("CPU           L5640  @ 2.27GHz", 12288, 12, 7.4, avx2=False),
    _xeon("CPU E5-2680 v3 @ 2.50GHz", 30720, 24, 11.6, avx2=True),
    _xeon("Gold 6338 CPU @ 2.00GHz", 49152, 64, 14.2, avx2=True),
    _epyc("7702 64-Core", 128, 12.6),
    _xeon("CPU E5-2640 v2 @ 2.00GHz", 20480, 16, 9.4, avx2=False),
    _xeon("CPU           E5520  @ 2.27GHz", 8192, 8, 8.1, avx2=False),
    _xeon("Gold 6342 CPU @ 2.80GHz", 36864, 48, 15.8, avx2=True),
    _epyc("7402 24-Core", 48, 15.0),
    _opteron("tm) Processor 6168", 512, 24, 8.0),
    _xeon("Gold 6230 CPU @ 2.10GHz", 28160, 40, 13.0, avx2=True),
    _epyc("7402P 24-Core", 24, 15.5),
    _xeon("CPU E5-2660 v3 @ 2.60GHz", 25600, 20, 11.8, avx2=True),
    _xeon("Silver 4314 CPU @ 2.40GHz", 24576, 32, 14.7, avx2=True),
)
"""Models in the order in which a grid takes them; the first few are of every kind."""
