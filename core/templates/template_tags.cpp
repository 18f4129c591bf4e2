// Scans for tags, and checks that sections begin and end in pairs.

#include <algorithm>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "templates/template_check.hpp"

namespace mailroom::templates {
namespace {

using Kind = TemplateTag::Kind;

constexpr std::size_t deepest_section = 32;

std::string_view without_space(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

Kind kind_of(char sign) {
  switch (sign) {
    case '#':
      return Kind::section;
    case '^':
      return Kind::inverted;
    case '/':
      return Kind::end;
    case '>':
      return Kind::partial;
    case '&':
      return Kind::unescaped;
    case '!':
      return Kind::comment;
    default:
      return Kind::variable;
  }
}

TemplateTag make_tag(std::string_view content, bool is_triple, std::size_t position, std::size_t size) {
  if (is_triple) return {Kind::unescaped, std::string(content), position, size};
  const auto kind = content.empty() ? Kind::variable : kind_of(content.front());
  if (kind == Kind::variable) return {kind, std::string(content), position, size};
  return {kind, std::string(without_space(content.substr(1))), position, size};
}

class TagFinder {
 public:
  explicit TagFinder(std::string_view text) : text_(text) {}

  TemplateTags find() {
    std::size_t position = 0;
    while (!found_.defect) {
      position = text_.find("{{", position);
      if (position == std::string_view::npos) break;
      position = take_tag(position);
    }
    if (!found_.defect && !open_.empty()) {
      const auto& tag = found_.tags[open_.back()];
      refuse(tag.position,
             fmt::format("the section {0} has no end; close it with {{{{/{0}}}}}", shown_text(tag.name)));
    }
    return std::move(found_);
  }

 private:
  /// Returns the position after the tag.
  std::size_t take_tag(std::size_t start) {
    const bool is_triple = start + 2 < text_.size() && text_[start + 2] == '{';
    const std::string_view close = is_triple ? "}}}" : "}}";
    const auto inside = start + close.size();
    const auto end = inside <= text_.size() ? text_.find(close, inside) : std::string_view::npos;
    if (end == std::string_view::npos) {
      refuse(start, fmt::format("a tag has no {}", close));
      return text_.size();
    }
    const auto content = without_space(text_.substr(inside, end - inside));
    if (content.starts_with('=')) {
      refuse(start, "the delimiters cannot be changed: a tag is always {{name}}");
    } else {
      add(make_tag(content, is_triple, start, end + close.size() - start));
    }
    return end + close.size();
  }

  void add(TemplateTag tag) {
    if (tag.kind == Kind::section || tag.kind == Kind::inverted) {
      if (open_.size() == deepest_section)
        return refuse(tag.position, fmt::format("sections are nested more than {} deep", deepest_section));
      open_.push_back(found_.tags.size());
    } else if (tag.kind == Kind::end) {
      if (!close_section(tag)) return;
    }
    found_.tags.push_back(std::move(tag));
  }

  bool close_section(const TemplateTag& tag) {
    const auto name = shown_text(tag.name);
    if (open_.empty()) {
      refuse(tag.position, fmt::format("the end of a section {} that has no beginning", name));
      return false;
    }
    const auto& begin = found_.tags[open_.back()];
    if (begin.name != tag.name) {
      refuse(tag.position, fmt::format("the end of a section {} within the section {} of line {}", name,
                                       shown_text(begin.name), line_of(text_, begin.position)));
      return false;
    }
    open_.pop_back();
    return true;
  }

  void refuse(std::size_t position, std::string reason) {
    found_.defect = TemplateDefect{.position = position, .reason = std::move(reason)};
  }

  std::string_view text_;
  TemplateTags found_;
  std::vector<std::size_t> open_;  ///< indexes of the tags that begin open sections
};

}  // namespace

TemplateTags find_tags(std::string_view text) {
  return TagFinder(text).find();
}

}  // namespace mailroom::templates
