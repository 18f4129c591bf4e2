// The program that reads bounces in no standard form: the real one, and what each misbehaviour makes of a
// mail.

#include "suppression/sisimai_reader.hpp"

#include <csignal>
#include <sstream>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::sisimai_reader_test {

using namespace std::chrono_literals;

namespace {

const std::string qmail_bounce =
    "Return-Path: <>\nFrom: MAILER-DAEMON@mx.example\nTo: bounce@app.example\nSubject: failure notice\n\n"
    "Hi. This is the qmail-send program at mx.example.\n"
    "I'm afraid I wasn't able to deliver your message to the following addresses.\n"
    "This is a permanent error; I've given up. Sorry it didn't work out.\n\n"
    "<ada@mail.example>:\n192.0.2.1 does not like recipient.\n"
    "Remote host said: 550 5.1.1 <ada@mail.example>... User unknown\nGiving up on 192.0.2.1.\n\n"
    "--- Below this line is a copy of the message.\n\nReturn-Path: <bounce@app.example>\n"
    "To: ada@mail.example\nSubject: Welcome\n\nHello\n";

struct ReaderRig {
  TemporaryDirectory directory;
  std::ostringstream text;
  Log log{{.level = LogLevel::info}, text};

  ReaderRig() { std::signal(SIGPIPE, SIG_IGN); }
  /// A program of the shell that finds `first`, a file that is there until somebody removes it.
  SisimaiReader shell(const std::string& program) {
    const auto first = directory.write("first", "");
    return SisimaiReader(log, {.command = {"/bin/sh", "-c", program, first}, .patience = 2s});
  }
};

constexpr auto answer = R"(echo '[{"address":"a@b.example","reason":"userunknown"}]')";

}  // namespace

TEST_CASE("a bounce of qmail is read by libsisimai-perl, and judged by its words") {
  ReaderRig rig;
  SisimaiReader reader(rig.log);
  for (int i = 0; i < 2; ++i) {
    const auto recipients = reader.read(qmail_bounce);
    INFO(rig.text.str());
    REQUIRE(recipients.size() == 1);
    const auto judged = judge_foreign(recipients.front());
    CHECK(judged.address == "ada@mail.example");
    CHECK(judged.kind == BounceKind::hard);
    CHECK(judged.reason == BounceReason::user_unknown);
    CHECK(judged.status == "5.1.1");
    CHECK(judged.code == 550);
  }
  CHECK(reader.read("Subject: Hello\n\nHow are you?\n").empty());
  CHECK(rig.text.str().empty());
}

TEST_CASE("where Perl or the library is missing, nothing is read and the log says so once") {
  ReaderRig rig;
  for (const auto& command : std::vector<std::vector<std::string>>{
           {"/nonexistent/perl"}, {"/bin/sh", "-c", "exit 2"}, {"perl", "-e", "use No::Such::Library"}}) {
    rig.text.str("");
    SisimaiReader reader(rig.log, {.command = command});
    CHECK(reader.read(qmail_bounce).empty());
    CHECK(reader.read(qmail_bounce).empty());
    const auto said = rig.text.str();
    CHECK(said.find("libsisimai-perl is not installed") != std::string::npos);
    CHECK(std::count(said.begin(), said.end(), '\n') == 1);
  }
}

TEST_CASE("a program that hangs or dies at a mail is started anew for the next") {
  for (const auto* const mishap : {"sleep 1000", "exit 1", "yes x | tr -d '\\n'"}) {
    INFO(mishap);
    ReaderRig rig;
    auto program = std::string("echo ready; read size; if rm \"$0\" 2>/dev/null; then ") + mishap +
                   "; else " + answer + "; fi; cat >/dev/null";
    auto reader = rig.shell(program);
    CHECK(reader.read(qmail_bounce).empty());
    const auto recipients = reader.read(qmail_bounce);
    REQUIRE(recipients.size() == 1);
    CHECK(recipients.front().address == "a@b.example");
    CHECK(rig.text.str().find("gave no answer to a bounce") != std::string::npos);
  }
}

TEST_CASE(
    "our words of a reason stand in charge, and what is called hard is not so if the other reader doubts it") {
  const auto judged = [](const std::string& words, const std::string& status, const std::string& reason) {
    const auto recipient = judge_foreign({.address = "a@b.example",
                                          .action = "failed",
                                          .status = status,
                                          .diagnostic = words,
                                          .reason = reason,
                                          .command = {}});
    return std::string(bounce_kind_name(recipient.kind)) + " " + bounce_reason_name(recipient.reason);
  };
  CHECK(judged("550 User unknown", "5.0.911", "userunknown") == "hard user_unknown");
  CHECK(judged("550 User unknown", "", "filtered") == "soft filtered");
  CHECK(judged("552 Mailbox full", "", "userunknown") == "soft mailbox_full");
  CHECK(judged("550 No", "", "userunknown") == "hard user_unknown");
  CHECK(judged("450 No", "", "userunknown") == "soft user_unknown");
  CHECK(judged("550 No", "", "onhold") == "undetermined undetermined");
  CHECK(judged("", "", "suspend") == "soft suspended");
}

}  // namespace mailroom::test::sisimai_reader_test
