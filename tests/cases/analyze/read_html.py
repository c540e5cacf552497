#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a page of `gpusonde analyze --format html` as a browser does and prints what is in it, as JSON.

    read_html.py PAGE
"""

import html.parser
import json
import os
import sys

VOID = {"meta", "br", "rect", "path"}  # rect and path close themselves in SVG


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []
        self.found = {"scripts": 0, "loaded": [], "unclosed": [], "tables": {}, "charts": 0, "hidden_charts": 0,
                      "title": "", "policy": None}
        self.caption = ""

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script" or any(name.startswith("on") for name in attrs):
            self.found["scripts"] += 1
        if tag in ("link", "img", "iframe", "object") or "src" in attrs or "href" in attrs:
            self.found["loaded"].append(tag)
        if tag == "svg":
            self.found["charts"] += 1
            self.found["hidden_charts"] += attrs.get("aria-hidden") == "true"
        if attrs.get("http-equiv") == "Content-Security-Policy":
            self.found["policy"] = attrs["content"]
        if tag == "caption":
            self.caption = ""
        if tag == "tr" and "tbody" in self.open:
            self.found["tables"].setdefault(self.caption, []).append([])
        if tag == "td":
            self.found["tables"][self.caption][-1].append("")

    def handle_startendtag(self, tag, attrs):
        if tag not in VOID:
            self.handle_starttag(tag, attrs)
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.found["unclosed"].append(tag)

    def handle_data(self, data):
        if "caption" in self.open:
            self.caption += data
        elif "title" in self.open:
            self.found["title"] += data
        elif "td" in self.open:
            self.found["tables"][self.caption][-1][-1] += data


page = Page()
with open(sys.argv[1], encoding="utf-8") as file:
    page.feed(file.read())
page.close()
page.found["unclosed"] += page.open
print(json.dumps({"bytes": os.path.getsize(sys.argv[1]), **page.found}))
