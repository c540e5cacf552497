# SPDX-License-Identifier: Apache-2.0
import unittest

import docs

TREE = {
    "Makefile": "test: ## run\n\techo\n",
    "apps/gpusonde/commands.cpp": 'Command{"record", AddRecord},\n',
    "src/base/fd.h": "",
    "src/base/fd.cpp": "",
    "docs/other.md": "# Two words & more\n\n## `code` in it\n",
}


class Docs(unittest.TestCase):
    def found(self, text, page="docs/a.md"):
        return docs.check(TREE | {page: text})

    def test_existing_things_have_no_findings(self):
        self.assertEqual(self.found("""# A
`src/base/fd.h`, `src/base/fd.{h,cpp}`, `src/base/*.h`, `base/fd.h:12`, `src/base/`, [other](other.md),
[heading](other.md#two-words--more), [code](other.md#code-in-it), [here](#a), `make test`, `gpusonde record -o x`,
[web](https://no-color.org), `a/b`, `build/release/bin/gpusonde`
"""), [])

    def test_a_missing_path_is_found(self):
        for path in ("src/base/gone.h", "src/base/fd.{h,c}", "src/gone/*.h", "base/gone.h"):
            self.assertEqual(len(self.found(f"one\n`{path}`\n")), 1, path)
        self.assertEqual(self.found("one\n`src/base/gone.h`\n"), ["docs/a.md:2: there is no src/base/gone.h"])

    def test_a_page_inside_a_folder_may_speak_from_there(self):
        files = TREE | {"web/src/app.ts": "", "web/README.md": "`src/app.ts` `src/gone.ts`\n"}
        self.assertEqual(docs.check(files), ["web/README.md:1: there is no src/gone.ts"])

    def test_a_dead_link_is_found(self):
        self.assertEqual(self.found("[x](gone.md)"), ["docs/a.md:1: the link to gone.md leads nowhere"])
        self.assertEqual(self.found("[x](../../outside.md)"),
                         ["docs/a.md:1: the link to ../../outside.md leads nowhere"])
        self.assertEqual(self.found("![x](images/gone.png)"),
                         ["docs/a.md:1: the link to images/gone.png leads nowhere"])

    def test_a_missing_heading_is_found(self):
        self.assertEqual(self.found("[x](other.md#gone)"), ["docs/a.md:1: docs/other.md has no heading #gone"])

    def test_links_count_from_the_page(self):
        self.assertEqual(self.found("[x](docs/other.md)", "README.md"), [])

    def test_a_missing_target_or_command_is_found_in_fences_too(self):
        self.assertEqual(self.found("```\nmake gone\ngpusonde record\ngpusonde fly\n```\n"),
                         ["docs/a.md:2: the Makefile has no target gone",
                          "docs/a.md:4: there is no command gpusonde fly"])

    def test_plans_may_name_what_is_not_there(self):
        text = "# A\n## Later (planned)\n`src/base/gone.h`\n### More\n`make gone`\n## Now\n`make gone`\n"
        self.assertEqual(self.found(text), ["docs/a.md:7: the Makefile has no target gone"])


if __name__ == "__main__":
    unittest.main()
