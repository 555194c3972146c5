"""Many programs: groups that are compiled together, findings that are made small and kept, counts that go on."""

from __future__ import annotations

import faulthandler
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.fuzz import engines, programs, shrinking
from tests.fuzz.engines import Finding
from tests.fuzz.generator import Generator
from tests.fuzz.programs import Program, walk
from tests.fuzz.table import EXCLUDED, ROWS
from tests.fuzz.transformations import NAMES

GROUP = 8
ENDLESS = 900.0  # seconds after which a group is given up
REPEATED = 3  # findings of one look are made small this often


@dataclass
class Campaign:
    """What a run has counted so far. `folder` keeps findings and the state, where there is one."""

    generator: Generator
    folder: Path | None = None
    primitives: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    looks: Counter[str] = field(default_factory=Counter)
    sizes: list[int] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    earlier: int = 0  # findings of processes before
    seconds: float = 0.0
    shrink_for: float = 20.0

    # -- state on disk -----------------------------------------------------------------------------------------

    def save(self, running: int | None = None) -> None:
        """`running`: the program from which a group runs, so that one that ends the process is passed over."""
        if self.folder is None:
            return
        g = self.generator
        state = {
            "seed": g.seed,
            "index": g.index,
            "rows": g.rows,
            "pairs": g.pairs,
            "primitives": self.primitives,
            "skips": self.skips,
            "looks": self.looks,
            "sizes": self.sizes,
            "findings": self.earlier + len(self.findings),
            "seconds": self.seconds,
            "running": running,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "state.new").write_text(json.dumps(state))
        (self.folder / "state.new").replace(self.folder / "state.json")

    @classmethod
    def open(cls, seed: int, folder: Path | None) -> Campaign:
        """The campaign of a seed, where it stopped."""
        file = folder / "state.json" if folder else None
        if file is None or not file.exists() or json.loads(file.read_text())["seed"] != seed:
            return cls(Generator(seed), folder)
        state = json.loads(file.read_text())
        generator = Generator(seed, state["index"], Counter(state["rows"]), Counter(state["pairs"]))
        found = cls(generator, folder, *(Counter(state[k]) for k in ("primitives", "skips", "looks")))
        found.sizes, found.seconds, found.earlier = state["sizes"], state["seconds"], state["findings"]
        if state["running"] is not None:  # the process ended inside this group
            found.skips["groups that ended the process or did not end"] += 1
        return found

    # -- running -----------------------------------------------------------------------------------------------

    def run(self, count: int, seconds: float = float("inf")) -> None:
        begin, before = time.monotonic(), self.seconds
        waiting: dict[bool, list[Program]] = {False: [], True: []}
        last = self.generator.index + count
        while self.generator.index < last and time.monotonic() - begin < seconds:
            program = self.generator.program()
            group = waiting[program.x64]
            group.append(program)
            if len(group) == GROUP:
                self.examine(group)
                group.clear()
                self.seconds = before + time.monotonic() - begin
                self.save()
        for group in waiting.values():
            if group:
                self.examine(group)
        self.seconds = before + time.monotonic() - begin
        self.save()

    def examine(self, group: list[Program]) -> None:
        self.save(self.generator.index)
        faulthandler.dump_traceback_later(ENDLESS, exit=True)
        if self.folder:
            (self.folder / "running.py").write_text("\n\n".join(map(programs.script, group)))
        for program, names in zip(group, engines.equations(group), strict=True):
            self.sizes.append(len(names))
            known = {
                p for s in walk(program.main) for row in ROWS if row.title == s.row for p in (row.primitive, *row.adds)
            }
            self.primitives.update({*names, *known})
        findings = engines.examine(group, self.skips)
        faulthandler.cancel_dump_traceback_later()
        for finding in findings:
            self.keep(finding)

    def keep(self, finding: Finding) -> None:
        """Makes a finding small, says it and writes it down."""
        look = look_of(finding)
        self.looks[look] += 1
        if self.looks[look] > REPEATED:
            return
        small = shrinking.shrink(finding, shrinking.checker(finding.mode), self.shrink_for)
        name = f"{small.mode}, {small.kind}: " + " ".join(sorted({s.row for s in walk(small.program.main)}))
        self.looks[name] += 1
        if self.looks[name] > 1:
            return
        self.findings.append(small)
        script = programs.script(small.program)
        title = f"program {small.program.name}, {small.mode}: {small.kind}\n{small.detail}"
        print(f"--- {title}\n{script[script.index('def ' + small.program.main.name) :]}", flush=True)
        if self.folder:
            comment = "".join(f"# {line}\n" for line in title.splitlines())
            (self.folder / f"{small.program.name.replace(':', '-')}.py").write_text(comment + script)

    # -- report ------------------------------------------------------------------------------------------------

    def unseen_pairs(self) -> list[str]:
        return [f"{a} > {b}" for a in NAMES for b in NAMES if not self.generator.pairs[f"{a} > {b}"]]

    def least(self, names: list[str]) -> list[tuple[str, int]]:
        out = {p for _, (_, group) in EXCLUDED.items() for p in group}
        return sorted(((n, self.primitives[n]) for n in names if n not in out), key=lambda x: (x[1], x[0]))

    def report(self, names: list[str]) -> str:
        """One paragraph on what was run. `names`: all primitives."""
        least = ", ".join(f"{n} {k}" for n, k in self.least(names)[:8])
        unseen = self.unseen_pairs()
        excluded = ", ".join(f"{len(group)} {why}" for why, (_, group) in EXCLUDED.items())
        skips = ", ".join(f"{n} {why}" for why, n in self.skips.most_common()) or "none"
        limits: Counter[str] = Counter()
        for row in ROWS:
            limits[row.limit] += self.generator.rows[row.title] if row.limit else 0
        limited = ", ".join(f"{n} {why}" for why, n in limits.most_common() if n) or "none"
        count = len(self.sizes)
        return (
            f"seed {self.generator.seed}: {count} programs, {median(self.sizes or [0]):.0f} equations in the median; "
            f"least seen: {least}; pairs of transformations not seen: {len(unseen)} of {len(NAMES) ** 2}"
            f"{' (' + ', '.join(unseen[:6]) + ' …)' if unseen else ''}; primitives left out: {excluded}; "
            f"operations whose operands are limited: {limited}; "
            f"skips: {skips}; findings: {self.earlier + len(self.findings)}; {self.seconds:.0f} s, "
            f"{1000 * self.seconds / max(count, 1):.0f} ms a program"
        )


def look_of(finding: Finding) -> str:
    """What findings that may well be the same have in common."""
    text = (
        "".join(c for c in finding.detail[:70] if not c.isdigit()) if finding.kind not in ("values", "threads") else ""
    )
    return f"{finding.mode} {finding.kind} {text or finding.program.name}"
