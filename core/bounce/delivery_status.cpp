// Reads blocks of fields; the first is about the mail, the others about a recipient each, and some servers
// mix them.

#include "bounce/delivery_status.hpp"

#include <algorithm>
#include <utility>

#include "base/encoded_text.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "bounce/evidence.hpp"
#include "bounce/judgement.hpp"
#include "bounce/status_code.hpp"
#include "bounce/text_recipients.hpp"

namespace mailroom::bounce {
namespace {

/// What stands before `;` if that is one word: `smtp` of `smtp; 550 no`.
std::string_view without_type(std::string_view value) {
  const auto end = value.find(';');
  if (end == std::string_view::npos) return trimmed(value);
  const auto type = trimmed(value.substr(0, end));
  const bool is_type = !type.empty() && type.find_first_of(" \t@<>:") == std::string_view::npos;
  return trimmed(is_type ? value.substr(end + 1) : value);
}

std::string* field_of(RecipientFields& recipient, std::string_view name) {
  if (name == "original-recipient") return &recipient.original;
  if (name == "final-recipient") return &recipient.final;
  if (name == "action") return &recipient.action;
  if (name == "status") return &recipient.status;
  if (name == "diagnostic-code") return &recipient.diagnostic;
  if (name == "remote-mta") return &recipient.remote_mta;
  if (name == "x-powermta-bouncecategory") return &recipient.category;
  return nullptr;
}

bool is_about_recipient(const RecipientFields& recipient) {
  return !recipient.original.empty() || !recipient.final.empty() || !recipient.action.empty() ||
         !recipient.status.empty();
}

/// Some leave out the empty line between recipients: then a second field of the same address begins the next,
/// or an original address behind all that one recipient has.
bool begins_next(const RecipientFields& current, const std::string* field) {
  if (field == &current.final) return !current.final.empty();
  if (field != &current.original) return false;
  return !current.original.empty() ||
         (!current.final.empty() && !current.action.empty() && !current.status.empty());
}

void add_recipients(const HeaderFields& block, std::vector<RecipientFields>& recipients) {
  RecipientFields current;
  const auto finish = [&] {
    if (is_about_recipient(current) && recipients.size() < bounce_limits::max_recipients)
      recipients.push_back(std::move(current));
    current = {};
  };
  for (const auto& [name, value] : block.all()) {
    auto* field = field_of(current, name);
    if (field == nullptr) continue;
    if (begins_next(current, field)) {
      finish();
      field = field_of(current, name);
    }
    if (field->empty()) *field = value;
  }
  finish();
}

/// One line, with one space between words: texts are folded anywhere.
std::string one_spaced(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = static_cast<unsigned char>(c) <= 0x20 || c == 0x7f;
    if (!is_space) line += c;
    if (is_space && !line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

/// `5.0.0` and the like say less than a status among the words.
std::string best_status(std::string_view field, std::string_view diagnostic) {
  auto status = find_status(field);
  if (!status.empty() && !status.ends_with(".0.0")) return status;
  auto other = find_status(diagnostic);
  return other.empty() ? status : other;
}

/// What a report is about.
struct ReportText {
  std::string text;  ///< for people
  bool is_only_one;  ///< it has one recipient
  /// The server has taken the mail: what came back is an answer that a rule of the recipient chose.
  bool is_of_rule = false;
};

/// Amazon SES takes a mail for its customers, and then sends what their receipt rules say.
bool is_of_receipt_rule(std::string_view reporting_mta) {
  const auto host = lower_case(without_type(reporting_mta));
  return host.starts_with("inbound-smtp.") && host.ends_with(".amazonaws.com");
}

BounceRecipient judged(const RecipientFields& fields, const ReportText& report) {
  BounceRecipient recipient;
  recipient.address = report_address(fields.original);
  auto final_address = report_address(fields.final);
  if (recipient.address.empty()) recipient.address = std::exchange(final_address, {});
  recipient.final_address = std::move(final_address);
  recipient.diagnostic = short_line(without_type(fields.diagnostic));
  recipient.remote_mta = short_line(without_type(fields.remote_mta));
  const auto action = lower_case(trimmed(std::string_view(fields.action).substr(0, fields.action.find(' '))));
  auto about = text_about(report.text, recipient.address, report.is_only_one);
  if (about.empty()) about = text_about(report.text, report_address(fields.final), report.is_only_one);
  const auto& words = recipient.diagnostic.empty() ? about : recipient.diagnostic;
  recipient.status = best_status(fields.status, words);
  recipient.code = find_reply_code(words);
  // Who answers for each recipient after the content, as by LMTP, says by this status that it was not that.
  const bool is_bad_mailbox = find_status(words).ends_with(".1.1");
  const auto said = lower_case(one_spaced(about + "\n" + recipient.diagnostic));
  const bool is_of_content = is_after_data(said);
  const bool is_general =
      recipient.status.empty() || recipient.status.ends_with(".0.0") || recipient.status == "5.5.0";
  const auto judgement =
      judge_bounce({.action = action,
                    .status = recipient.status,
                    .code = recipient.code,
                    .diagnostic = recipient.diagnostic,
                    .text = about,
                    .is_after_data = report.is_of_rule || (is_of_content && !is_bad_mailbox),
                    .is_at_recipient = is_at_recipient(said) || fields.category == "bad-mailbox" ||
                                       fields.is_permanent || (is_general && is_of_address(said))});
  recipient.kind = judgement.kind;
  recipient.reason = judgement.reason;
  if (recipient.diagnostic.empty()) recipient.diagnostic = short_line(reply_words(about));
  return recipient;
}

void read_reports(const std::vector<std::string>& parts, const std::string& text, Bounce& bounce) {
  std::vector<RecipientFields> recipients;
  bool is_of_rule = false;
  for (const auto& part : parts) {
    for (const auto& block : read_field_blocks(part, bounce_limits::max_recipients + 1)) {
      if (bounce.envelope_id.empty()) bounce.envelope_id = decode_xtext(block.first("original-envelope-id"));
      is_of_rule = is_of_rule || is_of_receipt_rule(block.first("reporting-mta"));
      add_recipients(block, recipients);
    }
  }
  for (const auto& fields : recipients)
    bounce.recipients.push_back(judged(fields, {text, recipients.size() == 1, is_of_rule}));
}

bool is_report_field(std::string_view line) {
  const auto name = lower_case(line.substr(0, std::min(line.find(':'), line.size())));
  return name == "final-recipient" || name == "original-recipient";
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// Not in lower case: `ada+bb@mail.example` is no xtext.
int xtext_value(char c) {
  return c >= 'a' ? -1 : hex_value(c);
}

}  // namespace

std::string short_line(std::string_view text) {
  auto line = one_spaced(text);
  if (line.size() > bounce_limits::max_diagnostic) {
    auto end = bounce_limits::max_diagnostic;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80)
      --end;
    line.resize(end);
  }
  return std::string(trimmed(line));
}

std::string report_address(std::string_view field) {
  constexpr std::size_t longest = 320;
  auto text = without_type(field);
  if (text.starts_with('<')) text = text.substr(1, text.find('>', 1) - 1);
  text = trimmed(text);
  if (text.empty() || text.size() > longest || text.front() == '|' || text.front() == '/' ||
      text.find_first_of(" <>\"") != std::string_view::npos || !is_printable(text))
    return {};
  std::string address(text);
  const auto at = address.rfind('@');
  if (at != std::string::npos) address.replace(at, std::string::npos, lower_case(address.substr(at)));
  return address;
}

void add_addresses(std::string_view value, std::size_t limit, std::vector<std::string>& addresses) {
  constexpr std::string_view separators = ", \t<>;\"";
  for (std::size_t from = 0; from < value.size() && addresses.size() < limit;) {
    const auto end = std::min(value.find_first_of(separators, from), value.size());
    auto address = report_address(value.substr(from, end - from));
    const bool is_new = std::find(addresses.begin(), addresses.end(), address) == addresses.end();
    if (is_new && address.find('@') != std::string::npos) addresses.push_back(std::move(address));
    from = end + 1;
  }
}

std::string decode_xtext(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '+' && i + 2 < text.size() ? xtext_value(text[i + 1]) : -1;
    const int low = high >= 0 ? xtext_value(text[i + 2]) : -1;
    decoded += low >= 0 ? static_cast<char>(high * 16 + low) : text[i];
    if (low >= 0) i += 2;
  }
  const bool is_line = std::none_of(decoded.begin(), decoded.end(), [](char c) { return is_control(c); });
  return is_line && is_utf8(decoded) ? decoded : std::string(text);
}

BounceRecipient judge_recipient(const RecipientFields& fields) {
  return judged(fields, {.text = {}, .is_only_one = true});
}

void read_delivery_status(const MailParts& mail, Bounce& bounce) {
  read_reports(mail.deliveries, people_text(mail.text), bounce);
}

void read_delivery_status_in_text(const MailParts& mail, Bounce& bounce) {
  std::string report;
  std::string paragraph;
  bool is_report = false;
  const std::string_view text = mail.text;
  for (std::size_t from = 0; from <= text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    const auto line = text.substr(from, end - from);
    if (trimmed(line).empty() || end == text.size()) {
      if (is_report) report.append(paragraph).append("\n");
      paragraph.clear();
      is_report = false;
    } else {
      paragraph.append(line).append("\n");
      is_report = is_report || is_report_field(line);
    }
    from = end + 1;
  }
  if (!report.empty()) read_reports({report}, people_text(mail.text), bounce);
}

void read_failed_recipients(const MailParts& mail, Bounce& bounce) {
  std::vector<std::string> addresses;
  add_addresses(mail.headers.first("x-failed-recipients"), bounce_limits::max_recipients, addresses);
  const auto text = people_text(mail.text);
  for (const auto& address : addresses) {
    RecipientFields fields;
    fields.final = address;
    bounce.recipients.push_back(judged(fields, {text, addresses.size() == 1}));
  }
}

void read_recipients_in_text(const MailParts& mail, Bounce& bounce) {
  std::vector<std::string> others;
  for (const auto* const name : {"from", "return-path", "reply-to", "sender"})
    add_addresses(mail.original.first(name), bounce_limits::max_recipients, others);
  for (const auto* const name : {"from", "reply-to", "to", "delivered-to", "x-original-to"})
    add_addresses(mail.headers.first(name), bounce_limits::max_recipients, others);
  for (auto& address : others)
    address = lower_case(address);
  for (auto& found : recipients_in_text(people_text(mail.text), others, bounce_limits::max_recipients)) {
    RecipientFields fields;
    fields.final = std::move(found.address);
    bounce.recipients.push_back(judged(fields, {found.about, true}));
  }
}

std::string original_recipient(const MailParts& mail) {
  for (const auto* const name : {"x-hmxmroriginalrecipient", "x-original-to", "to"}) {
    const auto& value = mail.original.first(name);
    if (value.empty() || value.find(',') != std::string::npos) continue;
    const auto bracket = value.find('<');
    auto address = report_address(bracket == std::string::npos ? value : value.substr(bracket));
    if (address.find('@') != std::string::npos) return address;
  }
  return {};
}

void read_original_recipient(const MailParts& mail, Bounce& bounce) {
  RecipientFields fields;
  fields.final = original_recipient(mail);
  if (!fields.final.empty()) bounce.recipients.push_back(judged(fields, {people_text(mail.text), true}));
}

}  // namespace mailroom::bounce
