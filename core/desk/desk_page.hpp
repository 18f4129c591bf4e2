// A page of the desk as HTML without script: what it shows, and what is around that on every page.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mailroom::desk {

/// What a request is answered with.
struct DeskPage {
  int status = 200;
  std::string title{};
  std::string body{};      ///< HTML
  std::string location{};  ///< another path, to go there instead
  std::string policy{};    ///< not empty: `body` is a whole document with this Content-Security-Policy
  std::string file{};      ///< not empty: `body` is JSON, to be kept under this name
};

/// Whom a page is for; no role: who has not signed in.
struct DeskReader {
  std::string role{};
  std::string csrf{};
};

/// The whole document.
std::string desk_document(const DeskPage& page, const DeskReader& reader);
/// Its Content-Security-Policy: no script, the style of the page, frames of the desk, nothing from elsewhere.
std::string desk_policy();

/// The form that signs in. `next`: a path of the desk, to go on to.
DeskPage sign_in_page(std::string_view problem, std::string_view role, std::string_view next);

/// Foreign text within HTML and its attributes: without control characters, and cut if it is very long.
std::string html_text(std::string_view text);
/// The same with its lines, for `<pre>`, and not cut.
std::string html_lines(std::string_view text);

/// The form that searches; `text` is in its field.
std::string search_form(std::string_view text);
/// `<p class="note" role="status">`
std::string note_html(std::string_view text);
/// A list of names and values (`<dl>`), without those that are empty.
std::string facts_html(const std::vector<std::pair<std::string, std::string>>& facts);

/// A table with a heading for each column; numbers are the columns from `first_number` on.
struct DeskTable {
  std::string caption{};
  std::vector<std::string> columns{};
  std::size_t first_number = 1000;
  std::vector<std::vector<std::string>> rows{};  ///< text
};
/// It scrolls within itself where it is wider than the screen.
std::string table_html(const DeskTable& table);

}  // namespace mailroom::desk
