// Feeds messages to the parser of Python's standard library, which knows nothing of ours.

#include "base/json.hpp"
#include "mail/message.hpp"
#include "support/catch.hpp"
#include "support/parsed_message.hpp"
#include "support/python_reader.hpp"
#include "support/random_mail.hpp"

namespace mailroom::test::mail_python_test {

using nlohmann::json;

namespace {

std::string built(const RandomMail& mail) {
  const mail::MessageBuilder builder(mail.from, mail.reply_to, mail.headers);
  return std::get<std::string>(builder.build(mail.content()));
}

json mailbox_json(const mail::Mailbox& mailbox) {
  return {mailbox.name, mailbox.address.text()};
}

/// RFC 5322 alone knows no such local parts, and Python says so of each.
json defects_of(const RandomMail& mail) {
  auto defects = json::array();
  const auto add = [&](const std::string& name, const mail::Address& address) {
    if (mail::needs_smtputf8(address)) defects.push_back(name + " NonASCIILocalPartDefect");
  };
  add("From", mail.from.address);
  add("To", mail.to);
  for (const auto& mailbox : mail.reply_to)
    add("Reply-To", mailbox.address);
  return defects;
}

/// What a correct parser understands of the mail, apart from its date.
json expected_of(const RandomMail& mail) {
  json extra{{"X-Auto-Response-Suppress", "All"}};
  for (const auto& header : mail.headers)
    extra[header.name] = header.value;
  return {{"subject", mail.subject},
          {"from", mailbox_json(mail.from)},
          {"to", {"", mail.to.text()}},
          {"reply_to", mail.reply_to.empty() ? json() : mailbox_json(mail.reply_to.front())},
          {"id", "<" + mail::make_message_id(mail.content(), mail.from.address.domain) + ">"},
          {"extra", extra},
          {"type", mail.html ? "multipart/alternative" : "text/plain"},
          {"text", as_part(mail.text)},
          {"html", mail.html ? json(as_part(*mail.html)) : json()},
          {"defects", defects_of(mail)}};
}

}  // namespace

TEST_CASE("Python's parser reads what was built, and finds no defect") {
  MailMaker maker(20261122);
  std::vector<RandomMail> mails;
  std::vector<std::string> messages;
  for (int i = 0; i < 800; ++i) {
    mails.push_back(maker.make());
    messages.push_back(built(mails.back()));
  }
  auto read = read_by_python(messages);
  REQUIRE(read.size() == mails.size());
  for (std::size_t i = 0; i < mails.size(); ++i) {
    auto& message = read[i];
    const auto expected = expected_of(mails[i]);
    INFO("mail " << i << "\n" << messages[i].substr(0, 4000));
    for (const auto& [key, value] : expected.items()) {
      INFO(key);
      REQUIRE(message[key] == value);
    }
    // Its own clock arithmetic, back to seconds.
    std::tm date{};
    const auto text = message["date"].get<std::string>();
    REQUIRE(text.ends_with("+00:00"));
    REQUIRE(strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &date) != nullptr);
    REQUIRE(timegm(&date) == in_seconds(mails[i].date));
  }
}

}  // namespace mailroom::test::mail_python_test
