# SPDX-License-Identifier: Apache-2.0
import unittest

import registries

# Composed here, so that this file itself names no registry.
HOST = "registry" + ".example.org"


class Registries(unittest.TestCase):
    def test_an_address_in_a_lock_file_is_found(self):
        findings = registries.check({"web/package-lock.json": '{\n"resolved": "file:x"\n}'})
        self.assertIn("web/package-lock.json:2: an address in a lock file", findings[0])

    def test_a_registry_host_is_found_in_any_file(self):
        findings = registries.check({"docs/a.md": f"see\nhttps://{HOST}/x"})
        self.assertEqual(findings, [f"docs/a.md:2: names the registry host {HOST}"])

    def test_other_addresses_are_fine(self):
        self.assertEqual(registries.check({"a.md": "https://no-color.org http://127.0.0.1:7070/"}), [])


if __name__ == "__main__":
    unittest.main()
