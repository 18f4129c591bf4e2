// Whom a relay's refusal is about, by what relays say.

#include <vector>

#include "carriers/smtp/refusal/refusal_subject.hpp"
#include "support/catch.hpp"

namespace mailroom::test::refusal_test {
namespace {

struct RefusalRow {
  int code;
  std::string text;
  delivery::RefusalSubject subject;
};

constexpr auto mail_recipient = "User7@Mail.Example";

}  // namespace

TEST_CASE("the words and codes of relays say whom a refusal is about") {
  using enum delivery::RefusalSubject;
  const std::vector<RefusalRow> rows{
      {530, "5.7.0 Authentication required", everyone},
      {535, "5.7.8 Authentication credentials invalid", everyone},
      {538, "encryption required", everyone},
      {504, "5.5.2 <app1>: Helo command rejected: need fully-qualified hostname", everyone},
      {450, "4.7.1 <app1>: Helo command rejected: Host not found", everyone},
      {553, "5.7.1 <no-reply@app.example>: Sender address rejected: not owned by user app", everyone},
      {550, "5.1.8 bad sender's system address", everyone},
      {554, "5.7.1 <unknown[192.0.2.1]>: Client host rejected: Access denied", everyone},
      {550, "5.4.5 Daily user sending limit exceeded. For more information", everyone},
      {554, "5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException; Failed to process message",
       everyone},
      {554, "5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException", everyone},
      {550, "5.1.0 no-reply@app.example sender rejected", everyone},
      {454, "Throttling failure: Daily message quota exceeded.", everyone},
      {550, "5.7.60 SMTP; Client does not have permissions to send as this sender", everyone},
      {550, "Domain app.example has exceeded the max emails per hour (100/100) allowed.", everyone},
      {550, "5.1.1 <user7@mail.example>: Recipient address rejected: User unknown",
       delivery::RefusalSubject::recipient},
      {504, "5.5.2 <user7@mail.example>: Recipient address rejected: need fully-qualified address",
       delivery::RefusalSubject::recipient},
      {550, "5.2.1 The email account that you tried to reach is disabled",
       delivery::RefusalSubject::recipient},
      {552, "5.2.2 mailbox full, over quota", delivery::RefusalSubject::recipient},
      {550, "No such user here", delivery::RefusalSubject::recipient},
      {550, "5.1.0 <no-reply@app.example>: Sender address rejected: User unknown in local recipient table",
       everyone},
      {550, "Sender verify failed: No Such User Here", everyone},
      {550, "5.1.1 <no-reply@app.example>: Sender address rejected: User unknown", everyone},
      {554, "5.7.1 <user7@mail.example>: Recipient address rejected: Policy Rejection- Quota exceeded.",
       unclear},
      {550, "5.7.1 <user7@mail.example>: Recipient address rejected: SPF fail - not authorized", unclear},
      {552, "5.2.3 Your message exceeded the size limits", unclear},
      {550, "<user7@mail.example>: Recipient address rejected: Domain not found",
       delivery::RefusalSubject::recipient},
      {554, "5.7.1 account suspended", unclear},
      {554, "5.7.1 <user7@mail.example>: Relay access denied", unclear},
      {550, "no", unclear},
      {451, "4.3.0 later", unclear},
      // The enhanced code is of another class, or no code at all.
      {550, "4.1.8 what", unclear},
      {550, "5.1.8.2 what", unclear},
  };
  for (const auto& row : rows) {
    INFO(row.code << " " << row.text);
    CHECK(static_cast<int>(smtp::subject_of_refusal(row.code, row.text, mail_recipient)) ==
          static_cast<int>(row.subject));
  }
}

TEST_CASE("no recipient chooses the words that are judged") {
  const std::string hostile = "\"Sender address rejected\"@mail.example";
  for (const std::string text :
       {"5.7.1 <\"sender address rejected\"@mail.example>: no",
        "5.7.1 \"SENDER ADDRESS REJECTED\"@mail.example: no",
        "5.7.1 verification failed: host mx.mail.example said: 550 Sender address rejected",
        "5.7.1 <sender address rejected"}) {
    INFO(text);
    CHECK(smtp::subject_of_refusal(550, text, hostile) == delivery::RefusalSubject::unclear);
  }
}

TEST_CASE("equal refusals differ in addresses and numbers only") {
  const auto key = [](int code, const std::string& text, const std::string& to) {
    return smtp::refusal_key(code, text, to);
  };
  CHECK(key(554, "5.7.1 <a@b.example>: refused, id 4XZ1", "a@b.example") ==
        key(554, "5.7.1 <c@d.example>: refused, id 9PQ2", "c@d.example"));
  CHECK(key(554, "5.7.1 no", "a@b") != key(550, "5.7.1 no", "a@b"));
  CHECK(key(554, "5.7.1 no", "a@b") != key(554, "5.7.2 no", "a@b"));
  CHECK(key(554, "5.7.1 spam", "a@b") != key(554, "5.7.1 suspended", "a@b"));
}

TEST_CASE("what a relay quotes from another server is not its own") {
  using enum delivery::RefusalSubject;
  const std::vector<RefusalRow> rows{
      {550, "Callout verification failed: 554 5.7.1 Client host rejected: Access denied", unclear},
      {550, "Callout verification failed: 550 response to \"RCPT TO:<user7@mail.example>\" was: 554 5.7.1 no",
       unclear},
      {550, "5.4.1 remote server returned '550 5.7.501 Access denied, spam abuse detected'", unclear},
      {550, "rejected; the response: 550 daily quota of the sender", unclear},
      {554, "5.7.1 verify: 550-5.1.8 bad outbound sender", unclear},
      {554, "5.7.1 on 2026-11-25 at 455 4.8 km: sender address rejected", everyone},
  };
  for (const auto& row : rows) {
    INFO(row.code << " " << row.text);
    CHECK(static_cast<int>(smtp::subject_of_refusal(row.code, row.text, mail_recipient)) ==
          static_cast<int>(row.subject));
  }
}

TEST_CASE("the sender can be unknown too") {
  const std::string sender = "No-Reply@app.example";
  const std::string text = "5.1.1 <no-reply@app.example> User unknown; rejecting";
  CHECK(smtp::subject_of_refusal(550, text, mail_recipient, sender) == delivery::RefusalSubject::everyone);
  CHECK(smtp::subject_of_refusal(550, text, mail_recipient) == delivery::RefusalSubject::recipient);
  CHECK(smtp::subject_of_refusal(550, "5.1.1 <user7@mail.example> from <no-reply@app.example>: unknown",
                                 mail_recipient, sender) == delivery::RefusalSubject::recipient);
  CHECK(smtp::subject_of_refusal(550, text, sender, sender) == delivery::RefusalSubject::recipient);
}

namespace {

/// A memory at a time that goes on by a second for each thing that happens.
struct Remembering {
  delivery::RefusalMemory memory{};
  WallTime now{std::chrono::hours(1000)};

  delivery::RefusalSubject refused(const std::string& key,
                                   delivery::RefusalSubject words = delivery::RefusalSubject::unclear,
                                   bool is_probe = false) {
    now += std::chrono::seconds(1);
    return memory.refused({.key = key, .by_words = words, .is_probe = is_probe}, now);
  }
  bool limited(const std::string& key) {
    now += std::chrono::seconds(1);
    return memory.limited(key, now);
  }
  void accepted(std::chrono::milliseconds took = std::chrono::milliseconds(500)) {
    now += std::chrono::seconds(1);
    memory.accepted({}, now - took, now);
  }
};

}  // namespace

TEST_CASE("the third equal refusal without an accepted mail is about the relay, and the sixth of any kind") {
  using enum delivery::RefusalSubject;
  Remembering a;
  for (const auto subject : {unclear, unclear, everyone, everyone})
    CHECK(a.refused("a") == subject);
  a.accepted();
  CHECK(a.refused("b") != everyone);
  CHECK(a.refused("c") != everyone);
  CHECK(a.refused("b") != everyone);
  CHECK(a.refused("c") != everyone);
  CHECK(a.refused("d") != everyone);
  CHECK(a.refused("e") == everyone);
  a.accepted();
  // A probe is never a victim, and neither is the mail after it.
  CHECK(a.refused("f", unclear, true) == everyone);
  CHECK(a.refused("f") == everyone);
}

TEST_CASE("words about everyone that other mails do not get are about the mail") {
  using enum delivery::RefusalSubject;
  Remembering relay;
  CHECK(relay.refused("quota", everyone) == everyone);
  // This one had begun before.
  relay.accepted(std::chrono::milliseconds(1500));
  CHECK(relay.refused("quota", everyone) == everyone);
  relay.accepted();
  for (int i = 1; i < delivery::RefusalMemory::longest_run; ++i)
    CHECK(relay.refused("quota", everyone) == delivery::RefusalSubject::recipient);
  CHECK(relay.refused("other quota", everyone) == everyone);
  // Nobody gets through any more.
  CHECK(relay.refused("quota", everyone) == everyone);
  relay.accepted();
  CHECK(relay.refused("quota", everyone) == delivery::RefusalSubject::recipient);
  relay.now += delivery::RefusalMemory::kept;
  CHECK(relay.refused("quota", everyone) == everyone);
}

TEST_CASE("what a sender, or a mail, was refused for while others were taken says nothing of others") {
  using enum delivery::RefusalSubject;
  Remembering relay;
  const delivery::RefusedMail of_sender{.key = "from a", .by_words = everyone, .is_of_sender = true};
  const delivery::RefusedMail again{.key = "no", .was_refused = true};
  CHECK(relay.memory.refused(of_sender, relay.now) == everyone);
  CHECK(relay.memory.refused(again, relay.now) == unclear);
  relay.accepted();
  for (int i = 0; i < 100; ++i) {
    CHECK(relay.memory.refused(of_sender, relay.now) == delivery::RefusalSubject::recipient);
    CHECK(relay.memory.refused(again, relay.now) == delivery::RefusalSubject::recipient);
  }
  // One of its mails is taken.
  relay.memory.accepted("from a", relay.now, relay.now);
  CHECK(relay.memory.refused(of_sender, relay.now) == everyone);
}

TEST_CASE("what one process has learnt of refusals, another goes on with") {
  using enum delivery::RefusalSubject;
  Remembering one;
  one.refused("a");
  Remembering other;
  other.memory.take(one.memory.json(one.now));
  CHECK(other.refused("a") == unclear);
  CHECK(other.refused("a") == everyone);
  one.refused("b", everyone);
  one.accepted();
  other.memory.take(one.memory.json(one.now));
  CHECK(other.refused("b", everyone) == delivery::RefusalSubject::recipient);
  CHECK(other.refused("a") == delivery::RefusalSubject::recipient);
  other.memory.take(nlohmann::json::array());
  CHECK(other.memory.json(other.now).empty());
}

TEST_CASE("words about a limit are believed until a mail gets them again and again alone") {
  Remembering relay;
  CHECK_FALSE(relay.limited("too many"));
  relay.accepted();
  CHECK_FALSE(relay.limited("too many"));
  relay.memory.meets_some("too many", relay.now);
  CHECK(relay.limited("too many"));
  relay.accepted();
  CHECK(relay.limited("too many"));
  CHECK(relay.limited("too many"));
  // Nobody gets through any more.
  CHECK_FALSE(relay.limited("too many"));
  relay.accepted();
  CHECK_FALSE(relay.limited("too many"));
}

TEST_CASE("what is remembered of a relay has an end") {
  using enum delivery::RefusalSubject;
  Remembering relay;
  CHECK(relay.refused("first", everyone) == everyone);
  relay.accepted();
  for (int i = 0; i < 300; ++i)
    relay.refused("other " + std::to_string(i), everyone);
  CHECK(relay.refused("first", everyone) == everyone);
}

}  // namespace mailroom::test::refusal_test
