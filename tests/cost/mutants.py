"""Mistakes that the tests of this folder must find: what is broken, where, the line as it is and with the mistake."""

from mutate import Mutant

OPERATIONS = ["tests/cost/test_flops.py"]
ESTIMATES = ["tests/cost/test_estimate.py", "-m", "not slow"]

MUTANTS = [
    Mutant(
        "costs: what is frozen has gradients",
        "cost/flops.py",
        old="back = work.backward if learns else 0.0",
        new="back = work.backward",
        tests=OPERATIONS,
    ),
    Mutant(
        "costs: only forward is unseen",
        "cost/flops.py",
        old="work.unseen * (1 + back / work.forward)",
        new="work.unseen",
        tests=OPERATIONS,
    ),
    Mutant(
        "costs: crossings forget what is frozen",
        "cost/curves.py",
        old="walk(config, batch=1, length=at, learning=learning)",
        new="walk(config, batch=1, length=at)",
        tests=OPERATIONS,
    ),
    Mutant(
        "costs: positions do not grow",
        "cost/curves.py",
        old='return config.override({"max_length": length})',
        new="return config",
        tests=OPERATIONS,
    ),
    Mutant(
        "costs: the optimizer comes twice",
        "cost/trace.py",
        old="return max(self.backward + self.optimizer, self.moved)",
        new="return max(self.backward, self.moved) + self.optimizer",
        tests=ESTIMATES,
    ),
    Mutant(
        "costs: anything fits",
        "cost/estimate.py",
        old="if tried.total <= free else",
        new="if True else",
        tests=ESTIMATES,
    ),
    Mutant(
        "costs: one part is all", "cost/estimate.py", old="more = batch / part - 1", new="more = 0", tests=ESTIMATES
    ),
    Mutant(
        "costs: products are always float32",
        "cost/trace.py",
        old="enabled=learning.bf16",
        new="enabled=False",
        tests=ESTIMATES,
    ),
    Mutant(
        "costs: everything learns",
        "cost/learning.py",
        old="            self.freeze(model)",
        new="            pass",
        tests=ESTIMATES,
    ),
    Mutant(
        "costs: gradients of both factors are always asked for",
        "cost/flops.py",
        old="left.requires_grad + right.requires_grad if torch.is_grad_enabled() else 0",
        new="2",
        tests=OPERATIONS,
    ),
    Mutant(
        "costs: a causal mask hides half, without the diagonal",
        "blocks/attention/softmax.py",
        old="(asking - 1) / (2 * answering)",
        new="0.5",
        tests=OPERATIONS,
    ),
    Mutant(
        "costs: tiles are computed once",
        "blocks/attention/pattern.py",
        old="pairs * (3 * width + 2 * values)",
        new="2 * pairs * (width + values)",
        tests=OPERATIONS,
    ),
    Mutant(
        "costs: a curve is a line",
        "cost/curves.py",
        old="shares[0] ** (-1 / power)",
        new="shares[0] ** -1",
        tests=OPERATIONS,
    ),
    Mutant("costs: memory is never given back", "cost/trace.py", old="self.held -= size", new="pass", tests=ESTIMATES),
    Mutant(
        "costs: tied weights are two", "cost/trace.py", old="if id(p) not in made:", new="if True:", tests=ESTIMATES
    ),
    Mutant(
        "costs: a long loop is a short one",
        "cost/estimate.py",
        old="math.prod((length - other) / (at - other) for other in short if other != at)",
        new="float(at == short[-1])",
        tests=ESTIMATES,
    ),
    Mutant(
        "costs: a block that says nothing costs nothing",
        "cost/flops.py",
        old="if kernel in KNOWN and not self.inside[-1][1]:",
        new="if kernel in KNOWN and not self.inside[-1][1] and kernel is aten.addmm:",
        tests=OPERATIONS,
    ),
    Mutant(
        "costs: what cannot be counted costs nothing",
        "cost/flops.py",
        old="aten._trilinear, ",
        new="",
        tests=OPERATIONS,
    ),
    Mutant(
        "costs: a large step takes as long as its part",
        "cost/estimate.py",
        old="size_of(pairs[place][0][1]) / size_of(pairs[place][1][1])",
        new="1.0",
        tests=ESTIMATES,
    ),
    Mutant(
        "costs: a plan counts as if all of it learned",
        "tasks/experiment.py",
        old="length=read, learning=learning_of(training)",
        new="length=read",
        tests=["tests/cost/test_plans.py"],
    ),
]
