// Matches and replaces by std::regex. Every text is a range of bytes here, so that its templates are made for
// one type of iterator.

#include "base/pattern.hpp"

#include <iterator>
#include <regex>

namespace mailroom {

struct Pattern::Compiled {
  std::regex form;
};

namespace {

namespace rules = std::regex_constants;

const char* end_of(std::string_view text) {
  return text.data() + text.size();
}

Pattern::Groups groups_of(const std::cmatch& match) {
  Pattern::Groups groups;
  groups.reserve(match.size());
  for (const auto& group : match)
    groups.push_back(group.str());
  return groups;
}

std::optional<Pattern::Groups> found_in(std::string_view text, const std::regex& form,
                                        rules::match_flag_type flags) {
  std::cmatch match;
  if (!std::regex_search(text.data(), end_of(text), match, form, flags)) return std::nullopt;
  return groups_of(match);
}

std::string with_replaced(std::string_view text, const std::regex& form, const std::string& replacement,
                          rules::match_flag_type flags) {
  std::string result;
  std::regex_replace(std::back_inserter(result), text.data(), end_of(text), form, replacement, flags);
  return result;
}

}  // namespace

Pattern::Pattern(const std::string& expression, LetterCase letter_case)
    : compiled_(std::make_shared<Compiled>(Compiled{
          std::regex(expression, letter_case == LetterCase::ignored ? rules::ECMAScript | rules::icase
                                                                    : rules::ECMAScript)})) {}

bool Pattern::matches(std::string_view text) const {
  return std::regex_match(text.data(), end_of(text), compiled_->form);
}

bool Pattern::occurs_in(std::string_view text) const {
  return std::regex_search(text.data(), end_of(text), compiled_->form);
}

std::optional<Pattern::Groups> Pattern::whole(std::string_view text) const {
  std::cmatch match;
  if (!std::regex_match(text.data(), end_of(text), match, compiled_->form)) return std::nullopt;
  return groups_of(match);
}

std::optional<Pattern::Groups> Pattern::at_start(std::string_view text) const {
  return found_in(text, compiled_->form, rules::match_continuous);
}

std::optional<Pattern::Groups> Pattern::first(std::string_view text) const {
  return found_in(text, compiled_->form, rules::match_default);
}

std::vector<Pattern::Groups> Pattern::all(std::string_view text) const {
  std::vector<Groups> matches;
  for (std::cregex_iterator match(text.data(), end_of(text), compiled_->form), end; match != end; ++match)
    matches.push_back(groups_of(*match));
  return matches;
}

std::string Pattern::replaced(std::string_view text, const std::string& replacement) const {
  return with_replaced(text, compiled_->form, replacement, rules::format_default);
}

std::string Pattern::replaced_first(std::string_view text, const std::string& replacement) const {
  return with_replaced(text, compiled_->form, replacement, rules::format_first_only);
}

}  // namespace mailroom
