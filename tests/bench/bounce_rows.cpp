// How fast `mailroom bounce` reads a maildir of reports, and with how much memory.

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>

#include "bench/databases.hpp"
#include "bench/loading.hpp"
#include "bench/row.hpp"
#include "mail/bounce_address.hpp"

namespace mailroom::bench {
namespace {

namespace fs = std::filesystem;

constexpr auto bounced_database = "bounced";
constexpr auto bounce_pattern = "bounce+{id}@bench.example";

/// Tokens 1 to $1 of accounts, each mailed and accepted.
constexpr const char* insert_mailed = R"(
WITH mailed AS (
    INSERT INTO tokens (id, account, action, secret, code, expires_at)
    SELECT g, g, CASE WHEN g % 3 = 0 THEN 'password_recovery' ELSE 'activation' END::token_action, sha256(int8send(g)), '12345',
           extract(epoch FROM now())::bigint + 2592000
    FROM generate_series(1, $1::bigint) g RETURNING id)
INSERT INTO mailroom_deliveries (queue, token, state, attempts, batch, accepted_at, address)
SELECT (SELECT min(job_type) FROM jobs), id, 'accepted', 1, 1, now(), 'user' || id || '@bench.example' FROM mailed)";

std::int64_t report_count(const Stage& stage) {
  return stage.scaled(10'000, 500);
}

void load_mailed(Stage& stage) {
  make_live_database(stage, bounced_database);
  stage.once("mailed tokens", [&] {
    const auto connection = stage.connect(bounced_database);
    without_triggers(*connection);
    connection->run(insert_mailed, report_count(stage));
    finish_loading(*connection);
  });
}

/// A notification as Postfix sends it, with the headers of the mail: of a mailbox that does not exist, or of
/// one that is full.
std::string report_on(std::int64_t token, const std::string& from) {
  const auto to = fmt::format("user{}@bench.example", token);
  const bool is_gone = token % 2 == 0;
  const std::string words =
      is_gone ? "550 5.1.1 <" + to + ">: Recipient address rejected: User unknown in virtual mailbox table"
              : "452 4.2.2 <" + to + ">: the mailbox is full, and takes no more mail";
  return fmt::format(
      "Return-Path: <>\nDelivered-To: {2}\nReceived: by mx{1}.bench.example (Postfix)\n\tid {1:010d}; Mon, 5 Oct 2026 10:00:00 "
      "+0000 (UTC)\n"
      "Date: Mon, 5 Oct 2026 10:00:00 +0000 (UTC)\nFrom: MAILER-DAEMON@mx.bench.example (Mail Delivery System)\n"
      "Subject: Undelivered Mail Returned to Sender\nTo: {2}\nAuto-Submitted: auto-replied\nMIME-Version: 1.0\n"
      "Content-Type: multipart/report; report-type=delivery-status;\n\tboundary=\"{1:010d}.1/mx.bench.example\"\n"
      "Message-Id: <{1}@mx.bench.example>\n\nThis is a MIME-encapsulated message.\n\n"
      "--{1:010d}.1/mx.bench.example\nContent-Description: Notification\nContent-Type: text/plain; charset=us-ascii\n\n"
      "This is the mail system at host mx.bench.example.\n\nI'm sorry to have to inform you that your message could "
      "not\nbe delivered to one or more recipients. It's attached below.\n\nFor further assistance, please send mail to "
      "postmaster.\n\n"
      "If you do so, please include this problem report. You can\ndelete your own text from the attached returned "
      "message.\n\n                   The mail system\n\n<{0}>: host mx.example[192.0.2.1] said: {3}\n    (in reply to RCPT TO command)\n\n"
      "--{1:010d}.1/mx.bench.example\nContent-Description: Delivery report\nContent-Type: message/delivery-status\n\n"
      "Reporting-MTA: dns; mx.bench.example\nX-Postfix-Queue-ID: {1:010d}\nX-Postfix-Sender: rfc822; {2}\n"
      "Arrival-Date: Mon, 5 Oct 2026 09:59:59 +0000 (UTC)\n\n"
      "Final-Recipient: rfc822; {0}\nOriginal-Recipient: rfc822;{0}\nAction: failed\nStatus: {4}\nRemote-MTA: dns; "
      "mx.example\nDiagnostic-Code: smtp; {3}\n\n"
      "--{1:010d}.1/mx.bench.example\nContent-Description: Undelivered Message Headers\nContent-Type: "
      "text/rfc822-headers\n\n"
      "Return-Path: <{2}>\nReceived: from app.bench.example (app.bench.example [192.0.2.7])\n\tby mx.bench.example (Postfix) with ESMTPS id "
      "{1:010d}\n\tfor <{0}>; Mon, 5 Oct 2026 09:59:59 +0000 (UTC)\nFrom: Bench <no-reply@bench.example>\nTo: <{0}>\nSubject: "
      "Activate your account\nMessage-ID: <{1}@app.bench.example>\nDate: Mon, 5 Oct 2026 09:59:59 +0000\nMIME-Version: "
      "1.0\nContent-Type: multipart/alternative; boundary=\"b\"\n\n--{1:010d}.1/mx.bench.example--\n",
      to, token, from, words, is_gone ? "5.1.1" : "4.2.2");
}

/// An empty maildir but for a report on each token.
void fill_maildir(const Stage& stage, const fs::path& maildir) {
  const mail::BounceAddress address(bounce_pattern, crypto::Key::from_hex(bench_key, "the bench"));
  const std::string home = stage.connect(bounced_database)->run("SELECT mailroom_home_name()")[0][0].c_str();
  fs::remove_all(maildir);
  for (const auto* part : {"new", "cur", "tmp"})
    fs::create_directories(maildir / part);
  for (std::int64_t token = 1; token <= report_count(stage); ++token)
    std::ofstream(maildir / "new" / fmt::format("17650000{:08d}.M1P1.mx", token), std::ios::binary)
        << report_on(token, address.address_with(address.id_of(token, home)));
}

Figures measure_maildir(Stage& stage) {
  const auto connection = stage.connect(bounced_database);
  connection->run("TRUNCATE mailroom_bounces, mailroom_suppressions");
  connection->run("CHECKPOINT");
  const fs::path maildir = stage.path("bounces");
  fill_maildir(stage, maildir);
  auto setup = stage.mailroom(bounced_database, {"bounce", "-q", "--maildir", maildir.string(), "--once"});
  setup.environment["MAILROOM_SEND_BOUNCE_ADDRESS"] = bounce_pattern;
  const auto cost = Process(setup).wait();
  const auto count = report_count(stage);
  const auto read =
      connection->run("SELECT count(token) FROM mailroom_bounces WHERE kind IN ('hard', 'soft')");
  const auto gone = connection->run("SELECT count(*) FROM mailroom_suppressions");
  if (read[0][0].as<std::int64_t>() != count || gone[0][0].as<std::int64_t>() != count / 2)
    throw std::runtime_error(fmt::format("of {} reports {} were read, and {} addresses suppressed", count,
                                         read[0][0].as<std::int64_t>(), gone[0][0].as<std::int64_t>()));
  return {{.value = static_cast<double>(count) / cost.seconds, .unit = "reports/s"},
          {.name = "CPU", .value = cost.cpu_seconds / static_cast<double>(count) * 1e6, .unit = "us/report"},
          {.name = "memory", .value = static_cast<double>(cost.peak_kib) / 1024, .unit = "MiB"}};
}

}  // namespace

std::vector<Row> bounce_rows() {
  return {{.name = "bounces/maildir",
           .meaning = "bounce --maildir --once of 10,000 reports as Postfix sends them, half of them hard",
           .prepare = load_mailed,
           .measure = measure_maildir}};
}

}  // namespace mailroom::bench
