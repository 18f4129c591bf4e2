// What is read within the text of a part: words of HTML, and the header of the mail that is sent back there.

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "bounce/mail_parts.hpp"

namespace mailroom::bounce {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> entities{{{"&lt;", "<"},
                                                                                 {"&gt;", ">"},
                                                                                 {"&quot;", "\""},
                                                                                 {"&nbsp;", " "},
                                                                                 {"&#39;", "'"},
                                                                                 {"&#64;", "@"},
                                                                                 {"&amp;", "&"}}};

bool ends_line(std::string_view tag) {
  constexpr std::array<std::string_view, 12> names{"br", "/p",  "/div", "/tr", "/li",    "/td",
                                                   "hr", "/h1", "/h2",  "/h3", "/title", "/pre"};
  const auto name = tag.substr(0, tag.find_first_of(" \t\r\n/>", 1));
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_field_name(std::string_view name) {
  constexpr std::array<std::string_view, 11> names{"received", "return-path",  "message-id",  "date",
                                                   "from",     "to",           "subject",     "delivered-to",
                                                   "reply-to", "mime-version", "content-type"};
  return name.starts_with("x-") || std::find(names.begin(), names.end(), name) != names.end();
}

bool is_field(std::string_view line) {
  const auto colon = line.substr(0, 80).find(':');
  return colon != std::string_view::npos && is_field_name(lower_case(line.substr(0, colon)));
}

}  // namespace

std::string text_of_html(std::string_view html) {
  std::string text;
  const auto lower = lower_case(html);
  for (std::size_t i = 0; i < html.size();) {
    if (html[i] == '<') {
      // What nobody sees goes with its tags.
      std::size_t end = std::string::npos;
      for (const auto& [open, close] :
           {std::pair{"<style", "</style"}, {"<script", "</script"}, {"<!--", "-->"}})
        if (lower.compare(i, std::string_view(open).size(), open) == 0) end = lower.find(close, i + 1);
      end = html.find('>', end == std::string::npos ? i : end);
      if (end == std::string::npos) break;
      if (ends_line(std::string_view(lower).substr(i + 1, end - i - 1))) text += '\n';
      i = end + 1;
      continue;
    }
    const auto* const entity = std::find_if(entities.begin(), entities.end(), [&](const auto& pair) {
      return lower.compare(i, pair.first.size(), pair.first) == 0;
    });
    const bool is_entity = html[i] == '&' && entity != entities.end();
    if (is_entity) text += entity->second;
    if (!is_entity) text += html[i] == '\r' || html[i] == '\n' ? ' ' : html[i];
    i += is_entity ? entity->first.size() : 1;
  }
  return text;
}

HeaderFields header_in_text(std::string_view text) {
  for (std::size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    const auto next = text.substr(std::min(end + 1, text.size()));
    const bool goes_on = is_field(next) || next.starts_with(' ') || next.starts_with('\t');
    if (is_field(text.substr(from, end - from)) && goes_on) {
      auto blocks = read_field_blocks(text.substr(from), 1);
      if (!blocks.empty() && blocks.front().all().size() > 1) return std::move(blocks.front());
    }
    from = end + 1;
  }
  return {};
}

}  // namespace mailroom::bounce
