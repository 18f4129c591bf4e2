// A mail of any content is refused, or built so that it reads back as what it was made of: by GMime, a
// library that is not ours, while our own reader checks the rules that GMime forgives.

#include "base/printable.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/gmime_reader.hpp"
#include "mail/configured_mail.hpp"
#include "mail/message.hpp"
#include "support/parsed_message.hpp"

using namespace mailroom;
using fuzz::require;

namespace {

/// Everything that a mail is made of.
struct Input {
  Mailbox from;
  std::vector<ExtraHeader> headers;
  Address to;
  std::string queue;
  std::string subject;
  std::string text;
  std::string html;
  std::int64_t created_at = 0;
  std::int64_t token = 0;
};

/// False unless the addresses and the header are such as the configuration and the database may have.
bool read_input(fuzz::Fields& fields, Input& input) {
  auto from = parse_mailbox(fields.take());
  auto to = parse_address(fields.take());
  auto headers = parse_extra_headers({std::string(fields.take())});
  if (!std::holds_alternative<Mailbox>(from) || !std::holds_alternative<Address>(to)) return false;
  input.from = std::get<Mailbox>(from);
  input.to = std::get<Address>(to);
  if (const auto* valid = std::get_if<std::vector<ExtraHeader>>(&headers)) input.headers = *valid;
  input.queue = fields.take();
  input.subject = fields.take();
  input.text = fields.take();
  input.html = fields.take();
  input.created_at = fields.take_number();
  input.token = fields.take_number();
  return true;
}

std::vector<std::string> expected_names(const Input& input) {
  std::vector<std::string> names{
      "Date",        "From", "To", "Subject", "Message-ID", "Auto-Submitted", "X-Auto-Response-Suppress",
      "MIME-Version"};
  for (const auto& header : input.headers)
    names.push_back(header.name);
  names.emplace_back("Content-Type");
  return names;
}

bool has_header(const fuzz::ReadMessage& read, const std::string& name, const std::string& value) {
  return std::find(read.headers.begin(), read.headers.end(), std::pair(name, value)) != read.headers.end();
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

void check_message(const std::string& message, const Input& input) {
  const bool is_utf8 = needs_smtputf8(input.to) || needs_smtputf8(input.from.address);
  require(test::parse_message(message, is_utf8).names() == expected_names(input),
          "it has its headers and no other");
  const auto read = fuzz::read_by_gmime(message);
  std::vector<std::string> names;
  for (const auto& [name, value] : read.headers)
    names.push_back(name);
  require(names == expected_names(input), "GMime finds its headers and no other");
  // GMime shows a domain that begins with xn-- decoded, so the header itself is compared.
  require(has_header(read, "To", input.to.text()) && read.recipients == 1, "it is for the recipient alone");
  require(read.subject == input.subject, "the subject reads back");
  require(read.parts ==
              Pairs{{"text/plain", test::as_part(input.text)}, {"text/html", test::as_part(input.html)}},
          "both parts read back, and there is no other");
  for (const auto& header : input.headers)
    require(has_header(read, header.name, header.value), "a header of the operator reads back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Fields fields(data, size);
  Input input;
  if (!read_input(fields, input)) return 0;
  const MessageBuilder builder(input.from, std::nullopt, input.headers);
  const MailContent content{.date = bounded_moment(std::chrono::seconds(input.created_at)),
                            .queue = input.queue,
                            .key = "0",
                            .token = input.token,
                            .to = input.to,
                            .subject = input.subject,
                            .text = input.text,
                            .html = input.html};
  const auto message = builder.build(content);
  const bool is_sound =
      is_printable(input.subject) && is_utf8(input.text) && is_utf8(input.html) && input.queue.size() <= 63;
  require(std::holds_alternative<std::string>(message) == is_sound, "what cannot be mailed is refused");
  if (!is_sound) return 0;
  try {
    check_message(std::get<std::string>(message), input);
  } catch (const std::exception& error) {
    require(false, error.what());
  }
  require(builder.build(content) == message, "the same content gives the same bytes");
  return 0;
}
