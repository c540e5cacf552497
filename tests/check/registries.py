#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages are named without their registry, which is a setting of each machine.

Lock files hold no addresses, and no file names the host of a package registry or mirror.
"""

import re

import tree

LOCK = re.compile(r"(^|/)(package-lock\.json|npm-shrinkwrap\.json)$")
URL = re.compile(r"\bhttps?://([A-Za-z0-9.-]+)")
# Parts of host names that registries and mirrors have.
REGISTRY_LABELS = {"artifactory", "deb", "goproxy", "mirror", "mirrors", "nexus", "npm", "proxy", "pypi", "registry"}


def check(files):
    findings = []
    for path, text in sorted(files.items()):
        for number, line in tree.numbered(text):
            if LOCK.search(path) and '"resolved"' in line:
                findings.append(f"{path}:{number}: an address in a lock file; .npmrc beside it says "
                                "omit-lockfile-registry-resolved, so run npm install again")
            for host in URL.findall(line):
                if REGISTRY_LABELS & set(host.lower().split(".")):
                    findings.append(f"{path}:{number}: names the registry host {host}")
    return findings


if __name__ == "__main__":
    tree.main(check)
