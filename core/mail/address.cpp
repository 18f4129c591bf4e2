// The rules of RFC 5321 for addresses, and IDNA for their domains. A refusal says what is wrong.

#include "mail/address.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <idn2.h>
#include <memory>

#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::mail {
namespace {

// RFC 5321, section 4.5.3.1; 254 is what fits into a path of 256 with its angle brackets.
constexpr std::size_t longest_local = 64;
constexpr std::size_t longest_address = 254;
constexpr std::size_t longest_label = 63;
/// Longer than any international address that fits once it is converted.
constexpr std::size_t longest_input = 1024;

/// An empty reason means that there is no problem.
using Reason = std::string;

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// `'_'`, or a description of a character that a message cannot show.
std::string shown_character(char c) {
  if (c == ' ') return "a blank";
  return fmt::format("'{}'", c);
}

Reason too_long(std::string_view what, std::size_t octets, std::size_t most) {
  return fmt::format("{} has {} octets, at most {} are allowed", what, octets, most);
}

/// True for a blank outside ASCII, such as U+00A0: a text that was pasted often ends in one.
bool has_wide_blank(std::string_view text) {
  constexpr std::array<PointRange, 6> blanks{{{0xA0, 0xA0},
                                              {0x1680, 0x1680},
                                              {0x2000, 0x200A},
                                              {0x202F, 0x202F},
                                              {0x205F, 0x205F},
                                              {0x3000, 0x3000}}};
  while (!text.empty()) {
    const auto length = sequence_length(text);
    if (is_in(blanks, code_point(text, length))) return true;
    text.remove_prefix(length);
  }
  return false;
}

/// A character that is not allowed in a dot-atom (RFC 5322, section 3.2.3); NUL if there is none.
char foreign_to_dot_atom(std::string_view local) {
  const auto is_allowed = [](char c) {
    return is_alphanumeric(c) || static_cast<unsigned char>(c) >= 0x80 ||
           std::string_view("!#$%&'*+-/=?^_`{|}~.").find(c) != std::string_view::npos;
  };
  const auto* const found = std::find_if_not(local.begin(), local.end(), is_allowed);
  return found == local.end() ? '\0' : *found;
}

/// Quoted as it may stand in a command and in a header: printable, without a quote or a backslash that is not
/// itself quoted, and without angle brackets, which end an address for careless relays.
Reason problem_of_quoted(std::string_view local) {
  if (local.size() < 3 || local.back() != '"') return "the local part has a quote that does not end";
  const auto text = local.substr(1, local.size() - 2);
  if (text.front() == '-') return "the local part begins with a hyphen";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') return "the local part has a quote in its middle";
    if (text[i] == '<' || text[i] == '>')
      return fmt::format("the local part has '{}', which is not allowed", text[i]);
    if (text[i] == '\\' && ++i == text.size()) return "the local part has a quote that does not end";
  }
  if (printable(local) != local) return "the local part has an invisible character";
  return {};
}

/// Old mobile addresses have two dots in a row, or one before the @: allowed in quotes only.
bool needs_quotes(std::string_view local) {
  return local.ends_with('.') || local.starts_with('.') || local.find("..") != std::string_view::npos;
}

Reason problem_of_local(std::string_view local) {
  if (local.empty()) return "there is nothing before the @";
  if (local.size() > longest_local) return too_long("the local part", local.size(), longest_local);
  if (local.front() == '"') return problem_of_quoted(local);
  if (const char c = foreign_to_dot_atom(local); c != '\0')
    return fmt::format("the local part has {}, which is not allowed", shown_character(c));
  // A relay may pass it to a program, which would take it for an option.
  if (local.front() == '-') return "the local part begins with a hyphen";
  if (printable(local) != local) return "the local part has an invisible character";
  if (has_wide_blank(local)) return "the local part has a blank, which is not allowed";
  return {};
}

Reason problem_of_label(std::string_view label) {
  if (label.empty()) return "the domain has an empty label";
  if (label.size() > longest_label) return too_long("a label of the domain", label.size(), longest_label);
  if (label.front() == '-' || label.back() == '-')
    return "a label of the domain begins or ends with a hyphen";
  const auto* const foreign =
      std::find_if_not(label.begin(), label.end(), [](char c) { return is_alphanumeric(c) || c == '-'; });
  if (foreign == label.end()) return {};
  return fmt::format("the domain has {}, which is not allowed", shown_character(*foreign));
}

/// `domain` is ASCII. A name without a dot is not fully qualified, as RFC 5321, section 2.3.5, requires.
Reason problem_of_domain(std::string_view domain) {
  if (domain.empty()) return "there is nothing after the @";
  if (domain.front() == '[') return "the domain is an address literal, and only a host name is allowed";
  std::size_t labels = 0;
  for (auto rest = domain;;) {
    const auto label = rest.substr(0, rest.find('.'));
    if (auto reason = problem_of_label(label); !reason.empty()) return reason;
    ++labels;
    if (label.size() == rest.size()) {
      if (labels < 2) return "the domain has no dot";
      const bool is_number =
          std::all_of(label.begin(), label.end(), [](char c) { return c >= '0' && c <= '9'; });
      return is_number ? "the domain ends in a number, and only a host name is allowed" : "";
    }
    rest.remove_prefix(label.size() + 1);
  }
}

/// The A-labels of an international domain (UTS 46, nontransitional, as browsers do it).
std::variant<std::string, Refusal> to_ascii(const std::string& domain) {
  char* converted = nullptr;
  const int status = idn2_to_ascii_8z(domain.c_str(), &converted, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
  const std::unique_ptr<char, void (*)(char*)> owner(converted, [](char* text) { idn2_free(text); });
  if (status != IDN2_OK)
    return Refusal{fmt::format("the domain is not an international host name ({})", idn2_strerror(status))};
  return std::string(converted);
}

Reason problem_of_text(std::string_view text) {
  if (!is_utf8(text)) return "the address is not valid UTF-8";
  if (!is_printable(text)) return "the address has a control character";
  if (text.size() > longest_input) return too_long("the address", text.size(), longest_address);
  if (text.find('@') == std::string_view::npos) return "the address has no @";
  return {};
}

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

/// `"a \"b\""` without its quotes and backslashes; other text as it is.
std::string unquoted(std::string_view name) {
  if (name.size() < 2 || name.front() != '"' || name.back() != '"') return std::string(name);
  std::string text;
  for (std::size_t i = 1; i + 1 < name.size(); ++i) {
    if (name[i] == '\\' && i + 2 < name.size()) ++i;
    text += name[i];
  }
  return text;
}

/// The size of the first mailbox of a list: up to a comma that is not quoted, and has an at sign before it
/// that is not either.
std::size_t mailbox_size(std::string_view list) {
  bool is_quoted = false;
  bool has_address = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (is_quoted && list[i] == '\\') {
      ++i;
    } else if (list[i] == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted) {
      if (list[i] == ',' && has_address) return i;
      has_address = has_address || list[i] == '@';
    }
  }
  return list.size();
}

/// True if what stands before the last address has another one: `A <a@b.example>, C`.
bool names_further_mailbox(std::string_view name) {
  bool is_quoted = false;
  std::string bare;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (is_quoted && name[i] == '\\') {
      ++i;
    } else if (name[i] == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted) {
      bare += name[i];
    }
  }
  const bool has_separator = bare.find_first_of(",;") != std::string::npos;
  return bare.find_first_of("<>") != std::string::npos ||
         (has_separator && (bare.find('@') != std::string::npos || name.front() == '"'));
}

}  // namespace

std::variant<Address, Refusal> parse_address(std::string_view text) {
  if (auto reason = problem_of_text(text); !reason.empty()) return Refusal{reason};
  const auto at = text.rfind('@');
  Address address{.local = std::string(text.substr(0, at)), .domain = std::string(text.substr(at + 1))};
  if (auto reason = problem_of_local(address.local); !reason.empty()) return Refusal{reason};
  if (address.local.front() != '"' && needs_quotes(address.local)) {
    address.local = fmt::format("\"{}\"", address.local);
    if (address.local.size() > longest_local)
      return Refusal{too_long("the local part", address.local.size(), longest_local)};
  }
  if (!is_ascii(address.domain)) {
    auto converted = to_ascii(address.domain);
    if (auto* refusal = std::get_if<Refusal>(&converted)) return std::move(*refusal);
    address.domain = std::get<std::string>(std::move(converted));
  }
  // After the conversion, which maps some characters to ASCII: U+FF20 becomes another @.
  if (auto reason = problem_of_domain(address.domain); !reason.empty()) return Refusal{reason};
  const auto size = address.text().size();
  if (size > longest_address) return Refusal{too_long("the address", size, longest_address)};
  return address;
}

std::variant<Mailbox, Refusal> parse_mailbox(std::string_view text) {
  text = without_blanks(text);
  const auto open = text.rfind('<');
  const bool is_bracketed = !text.empty() && text.back() == '>' && open != std::string_view::npos;
  const auto name = is_bracketed ? without_blanks(text.substr(0, open)) : std::string_view{};
  if (!is_printable(name)) return Refusal{"the name has a control character or invalid UTF-8"};
  const auto local = text.substr(0, text.rfind('@'));
  const bool is_list =
      !is_bracketed && local.find('@') != std::string_view::npos && names_further_mailbox(local);
  if (is_list || names_further_mailbox(name)) return Refusal{std::string(several_mailboxes)};
  auto address = parse_address(is_bracketed ? text.substr(open + 1, text.size() - open - 2) : text);
  if (auto* refusal = std::get_if<Refusal>(&address)) return std::move(*refusal);
  return Mailbox{.name = unquoted(name), .address = std::get<Address>(std::move(address))};
}

std::variant<std::vector<Mailbox>, Refusal> parse_mailboxes(std::string_view text) {
  std::vector<Mailbox> mailboxes;
  while (true) {
    const auto size = mailbox_size(text);
    auto mailbox = parse_mailbox(text.substr(0, size));
    if (auto* refusal = std::get_if<Refusal>(&mailbox)) return std::move(*refusal);
    mailboxes.push_back(std::get<Mailbox>(std::move(mailbox)));
    if (size == text.size()) return mailboxes;
    text.remove_prefix(size + 1);
  }
}

std::string address_of_mailbox(std::string_view text) {
  text = without_blanks(text);
  const auto open = text.rfind('<');
  if (text.empty() || text.back() != '>' || open == std::string_view::npos) return std::string(text);
  return std::string(without_blanks(text.substr(open + 1, text.size() - open - 2)));
}

std::string canonical_text(const Address& address) {
  auto local = unquoted(address.local);
  if (foreign_to_dot_atom(local) != '\0' || needs_quotes(local)) {
    std::string quoted;
    for (const char c : local)
      quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    local = fmt::format("\"{}\"", quoted);
  }
  return lower_case(local + "@" + address.domain);
}

std::string international_text(const Address& address) {
  char* converted = nullptr;
  const int status = idn2_to_unicode_8z8z(address.domain.c_str(), &converted, 0);
  const std::unique_ptr<char, void (*)(char*)> owner(converted, [](char* text) { idn2_free(text); });
  return status == IDN2_OK ? address.local + "@" + converted : address.text();
}

bool needs_smtputf8(const Address& address) {
  return !is_ascii(address.local) || !is_ascii(address.domain);
}

}  // namespace mailroom::mail
