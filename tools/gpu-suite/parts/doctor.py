# SPDX-License-Identifier: Apache-2.0
"""gpusonde's capabilities on this machine."""

from suite import Result, device_name

TITLE = "gpusonde doctor"
NEEDS = "nothing"


def run(suite):
    result = Result()
    findings = suite.doctor()
    for name, finding in findings.items():
        advice = f"; {finding['what_to_do']}" if finding["what_to_do"] else ""
        result.notes.append(f"{name} {'works' if finding['works'] else 'does not work'}: {finding['why']}{advice}")
    if device_name():
        for name in ("cuda", "cupti", "nvml"):
            result.fact(f"doctor finds {name} where a program can use the GPU", findings[name]["works"],
                        findings[name]["why"])
    return result
