// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/html.h"

namespace gpusonde::analyze {

// Writes an HTML page. Only Raw and RawCell take markup; everything else escapes its text.
class HtmlWriter {
 public:
  template <class... Args>
  void Raw(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  void RawText(std::string_view markup) { out_ += markup; }

  void BeginPage(std::string_view title, std::string_view explanation);
  void EndPage() { RawText("</main>\n</body>\n</html>\n"); }

  // A section, which ends with EndSection.
  void Section(std::string_view title, std::string_view explanation = {});
  void EndSection() { RawText("</section>\n"); }
  void Paragraph(std::string_view text);

  // A table of rows of cells. A heading that begins with '#' is above figures, which are aligned right.
  void Table(std::string_view caption, std::span<const std::string_view> headings);
  void Table(std::string_view caption, std::initializer_list<std::string_view> headings) {
    Table(caption, std::span(headings.begin(), headings.size()));
  }
  void Row() { RawText("<tr>"); }
  void Cell(std::string_view text) { Raw("<td>{}</td>", EscapedHtml(text)); }
  void Figure(std::string_view text) { Raw("<td class=n>{}</td>", EscapedHtml(text)); }
  // A name as it is shown, and the whole name, which a pointer shows.
  void Name(std::string_view shown, std::string_view whole);
  // Markup, such as a chart.
  void RawCell(std::string_view markup) { Raw("<td class=chart>{}</td>", markup); }
  void EndRow() { RawText("</tr>\n"); }
  // `left_out`: how many rows the table doesn't show.
  void EndTable(size_t left_out = 0);

  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace gpusonde::analyze
