// Visits a template with its partials in place, bounds size and depth, and suggests the name that was meant.

#include "templates/template_check.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "templates/template_values.hpp"

namespace mailroom::templates {
namespace {

using Kind = TemplateTag::Kind;

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
const std::string_view partial_suffix = suffix_of(MailPart::partial);
constexpr std::size_t deepest_partial = 32;
/// Of a template with its partials in place: a few partials that include each other often make any size.
constexpr std::size_t largest_expansion = 1024 * 1024;

[[noreturn]] void refuse_at(const std::string& place, std::string_view text, std::size_t position,
                            const std::string& reason, const std::string& hint = {}) {
  throw Error(ExitCode::configuration,
              fmt::format("{}:{}: {}", shown_text(place), line_of(text, position), reason), hint);
}

/// `text` without a byte order mark; of a subject and a partial also without the line end of its file.
std::string normalised(std::string_view text, MailPart part) {
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  const bool is_within_line = part == MailPart::subject || part == MailPart::partial;
  if (is_within_line && text.ends_with('\n')) {
    text.remove_suffix(1);
    if (text.ends_with('\r')) text.remove_suffix(1);
  }
  return std::string(text);
}

/// The position of the first byte that is not part of valid UTF-8.
std::optional<std::size_t> find_invalid(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

/// The position of the first control character other than tabs and line ends.
std::optional<std::size_t> find_control(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool is_control = (c >= 0 && c < 0x20) || c == 0x7F;
    const bool is_line_end = c == '\n' || (c == '\r' && text.substr(at).starts_with("\r\n"));
    if (is_control && c != '\t' && !is_line_end) return at;
  }
  return std::nullopt;
}

std::string known_variables() {
  return fmt::format("variables: {}", joined(variable_names(), ", "));
}

}  // namespace

CheckedTemplate TemplateChecker::check(const std::string& place, std::string_view text,
                                       const TemplateFileName& name, bool knows_all) {
  part_ = name.part;
  knows_all_ = knows_all;
  chain_.clear();
  extents_.clear();
  const Source source{place, normalised(text, name.part), name.locale};
  CheckedTemplate checked{.text = source.text, .tags = {}};
  checked.size = visit(source, checked.tags).size;
  return checked;
}

TemplateChecker::Extent TemplateChecker::visit(const Source& source, std::vector<TemplateTag>& tags) {
  check_text(source);
  auto found = find_tags(source.text);
  if (found.defect) refuse_at(source.place, source.text, found.defect->position, found.defect->reason);
  Extent extent{.size = source.text.size(), .depth = 0};
  for (const auto& tag : found.tags) {
    if (tag.kind == Kind::comment || tag.kind == Kind::end) continue;
    if (tag.kind == Kind::partial) {
      const auto partial = visit_partial(source, tag.name, tag.position);
      extent.size += partial.size;
      extent.depth = std::max(extent.depth, partial.depth + 1);
    } else {
      check_name(source, tag.name, tag.position);
    }
    warn_of(source, tag);
    if (extent.size > largest_expansion) {
      refuse_at(source.place, source.text, tag.position,
                fmt::format("with its partials it is larger than {} KiB", largest_expansion / 1024));
    }
  }
  tags = std::move(found.tags);
  return extent;
}

TemplateChecker::Extent TemplateChecker::visit_partial(const Source& including, const std::string& name,
                                                       std::size_t position) {
  if (std::find(chain_.begin(), chain_.end(), name) != chain_.end()) {
    refuse_at(including.place, including.text, position,
              fmt::format("the partial {} includes itself: {} > {}", shown_text(name), joined(chain_, " > "),
                          shown_text(name)));
  }
  const auto& files = partial_files(including, name, position);
  const auto known = extents_.find(name);
  const auto depth = chain_.size() + 1 + (known == extents_.end() ? 0 : known->second.depth);
  if (depth > deepest_partial) {
    refuse_at(including.place, including.text, position,
              fmt::format("partials are nested more than {} deep", deepest_partial));
  }
  if (known != extents_.end()) return known->second;
  Extent largest;
  chain_.push_back(name);
  for (const auto& [locale, file] : files) {
    Source source{files_.path_of(file), normalised(files_.texts.at(file), MailPart::partial), locale};
    CheckedTemplate checked;
    const auto extent = visit(source, checked.tags);
    largest = {std::max(largest.size, extent.size), std::max(largest.depth, extent.depth)};
    checked.text = std::move(source.text);
    partials_.insert_or_assign(file, std::move(checked));
  }
  chain_.pop_back();
  return extents_.emplace(name, largest).first->second;
}

const FilesByLocale& TemplateChecker::partial_files(const Source& including, const std::string& name,
                                                    std::size_t position) {
  const auto& partials = names_[MailPart::partial];
  const auto found = partials.find(name);
  if (found == partials.end()) {
    std::vector<std::string> known;
    for (const auto& [other, files] : partials)
      known.push_back(shown_text(other));
    refuse_at(including.place, including.text, position,
              fmt::format("there is no partial {}", shown_text(name)),
              known.empty() ? fmt::format("a partial is a file NAME{} in the same directory", partial_suffix)
                            : fmt::format("partials: {}", joined(known, ", ")));
  }
  const auto chain = locale_chain(including.locale);
  const bool suits_all = std::any_of(chain.begin(), chain.end(),
                                     [&](const auto& locale) { return found->second.count(locale) > 0; });
  if (!suits_all)
    refuse_at(including.place, including.text, position,
              fmt::format("the partial {} has no file for {}", shown_text(name),
                          including.locale.empty() ? "every locale" : including.locale),
              fmt::format("add {}{}, which stands in for all locales", shown_text(name), partial_suffix));
  return found->second;
}

void TemplateChecker::check_text(const Source& source) const {
  const auto& place = source.place;
  const auto& text = source.text;
  if (text.size() > largest_template)
    refuse_at(place, text, 0, fmt::format("it is larger than {} KiB", largest_template / 1024));
  if (const auto at = find_invalid(text)) refuse_at(place, text, *at, "invalid UTF-8");
  if (const auto at = find_control(text)) refuse_at(place, text, *at, "a control character");
  if (part_ != MailPart::subject) return;
  if (const auto at = text.find('\n'); at != std::string::npos)
    refuse_at(place, text, at + 1, "a subject has one line, and so has a partial in it");
  if (const auto at = text.find('\t'); at != std::string::npos)
    refuse_at(place, text, at, "a subject must not have a tab");
}

void TemplateChecker::check_name(const Source& source, const std::string& name, std::size_t position) const {
  if (!knows_all_) {
    const bool is_sound = name == "." || (!name.empty() && name.front() != '.' && name.back() != '.' &&
                                          name.find("..") == std::string::npos);
    if (!is_sound)
      refuse_at(source.place, source.text, position, fmt::format("{{{{{}}}}} is no name", shown_text(name)),
                "write {{name}}, {{name.of.a.part}}, or {{.}} for the item of a list");
    return;
  }
  if (is_variable(name)) return;
  const auto meant = nearest_word(name, variable_names());
  refuse_at(source.place, source.text, position,
            fmt::format("unknown variable {{{{{}}}}}{}", shown_text(name),
                        meant.empty() ? "" : fmt::format("; did you mean {{{{{}}}}}?", meant)),
            known_variables());
}

void TemplateChecker::warn_of(const Source& source, const TemplateTag& tag) {
  const auto add = [&](const std::string& text) {
    auto warning =
        fmt::format("{}:{}: {}", shown_text(source.place), line_of(source.text, tag.position), text);
    if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end())
      warnings_.push_back(std::move(warning));
  };
  if (tag.kind == Kind::unescaped && part_ == MailPart::html)
    add(fmt::format("{0} is not escaped, so a value may change the HTML; write {{{{{0}}}}}", tag.name));
  const bool is_shown = tag.kind == Kind::variable || tag.kind == Kind::unescaped;
  const bool is_foreign =
      !source.locale.empty() && source.locale != "en" && !source.locale.starts_with("en-");
  if (is_shown && is_foreign && tag.name == "expires_in")
    add("{{expires_in}} is English in every locale; {{expires_in.minutes}}, {{expires_in.hours}} and "
        "{{expires_in.days}} are numbers");
}

}  // namespace mailroom::templates
