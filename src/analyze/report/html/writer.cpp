// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/html/writer.h"

#include "analyze/report/html/style.h"
#include "base/html.h"
#include "base/printable.h"

namespace gpusonde::analyze {
namespace {

// Longer ones are cut in what a pointer shows; the list of names at the end of the page has more.
constexpr size_t kMaxTip = 500;

// No script runs and nothing is loaded, whatever a name in a trace contains.
constexpr std::string_view kPageHead = R"html(<!doctype html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name=viewport content="width=device-width, initial-scale=1">
<meta name=color-scheme content="light dark">
)html";

}  // namespace

void HtmlWriter::BeginPage(std::string_view title, std::string_view explanation) {
  RawText(kPageHead);
  Raw("<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n<p class=dim>{}</p>\n<main>\n",
      EscapedHtml(title), kStyle, EscapedHtml(title), EscapedHtml(explanation));
}

void HtmlWriter::Section(std::string_view title, std::string_view explanation) {
  Raw("<section>\n<h2>{}</h2>\n", EscapedHtml(title));
  if (!explanation.empty()) Raw("<p class=dim>{}</p>\n", SentenceHtml(explanation));
}

void HtmlWriter::Paragraph(std::string_view text) { Raw("<p>{}</p>\n", SentenceHtml(text)); }

void HtmlWriter::Table(std::string_view caption, std::span<const std::string_view> headings) {
  Raw("<div class=wide><table>\n<caption>{}</caption>\n<thead><tr>", EscapedHtml(caption));
  for (const std::string_view heading : headings) {
    const bool is_figure = heading.starts_with('#');
    Raw("<th scope=col{}>{}</th>", is_figure ? " class=n" : "",
        EscapedHtml(heading.substr(is_figure ? 1 : 0)));
  }
  RawText("</tr></thead>\n<tbody>\n");
}

void HtmlWriter::Name(std::string_view shown, std::string_view whole) {
  if (shown == whole) return Raw("<td class=name>{}</td>", EscapedHtml(shown));
  Raw("<td class=name title=\"{}\">{}</td>", EscapedHtml(Shorten(whole, kMaxTip)), EscapedHtml(shown));
}

void HtmlWriter::EndTable(size_t left_out) {
  RawText("</tbody></table></div>\n");
  if (left_out > 0) Raw("<p class=dim>… and {} more, in the JSON.</p>\n", left_out);
}

}  // namespace gpusonde::analyze
