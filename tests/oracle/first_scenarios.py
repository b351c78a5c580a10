"""The 20 scenarios that were computed with the first edition: name -> (preset, settings)."""

SCENARIOS: dict[str, tuple[str, list[str]]] = {
    "gpt4-scale-2tb": ("gpt4-scale-2tb", []),
    "llama31-405b-16k": ("llama31-405b-16k", []),
    "micron-100k": ("micron-100k", []),
    "opt-175b": ("opt-175b", []),
    "bloom-176b": ("bloom-176b", []),
    "small-8b": ("small-8b", []),
    "llama async": ("llama31-405b-16k", ["policy.mode=async"]),
    "two tiers async": ("small-8b", ["policy.mode=async", "policy.second_every=4"]),
    "electricity paid": (
        "gpt4-scale-2tb",
        [
            "policy.optimal=energy",
            "cluster.price_includes_electricity=false",
            "checkpoint.model=deepseek-v3",
            "cluster.id=h800-2048",
            "site.id=france",
        ],
    ),
    "deltas by the clock": (
        "gpt4-scale-2tb",
        [
            "policy.clock=2 h",
            "checkpoint.full_every=10",
            "checkpoint.delta_fraction=0.1",
            "checkpoint.compression_ratio=1.4",
            "failures.rack_rate=0.001 /day",
        ],
    ),
    "blocked in flight": (
        "llama31-405b-16k",
        ["policy.mode=async", "policy.interval=20 s", "policy.in_flight=2"],
    ),
    "skips": (
        "llama31-405b-16k",
        [
            "policy.mode=async",
            "policy.interval=20 s",
            "policy.when_busy=skip",
            "policy.staging=before",
        ],
    ),
    "steps": ("opt-175b", ["policy.steps=500", "policy.step=12 s", "policy.pipelined=false"]),
    "budget": ("micron-100k", ["cluster.staging_budget=100 GB", "policy.in_flight=2"]),
    "best for dollars": ("bloom-176b", ["policy.optimal=COST"]),
    "two tiers dollars": ("small-8b", ["policy.optimal=COST"]),
    "mtbf, gb200": (
        "llama31-405b-16k",
        ["failures.mtbf=5 h", "cluster.id=gb200-nvl72", "checkpoint.model=llama31-70b"],
    ),
    "tpu": ("llama31-405b-16k", ["cluster.id=tpu-v5p-6144"]),
    "never": ("small-8b", ["policy.interval=30 days"]),
    "keeps all": ("gpt4-scale-2tb", ["policy.keep_last=all", "policy.optimal=COST"]),
}
