#include "fault/message_oracle.hpp"

#include <stdexcept>

#include "support/test_sender.hpp"

namespace mailroom::test {
namespace {

/// A message, and one of its addresses.
using Copy = std::pair<std::string, std::string>;

std::string subject_of(const TakenMail& mail) {
  constexpr std::string_view name = "\r\nSubject: ";
  const auto at = mail.message.find(name);
  if (at == std::string::npos) throw std::runtime_error("a mail without a subject was taken");
  const auto start = at + name.size();
  return mail.message.substr(start, mail.message.find("\r\n", start) - start);
}

/// The messages by which each copy was taken.
std::map<Copy, std::set<std::int64_t>> taken_copies(const std::vector<TakenMail>& mails) {
  std::map<Copy, std::set<std::int64_t>> copies;
  for (const auto& mail : mails) {
    if (const auto message = message_of(mail); message > 0)
      copies[{subject_of(mail), mail.to}].insert(message);
  }
  return copies;
}

/// The copies on record as given up by the relay, and as too late.
std::set<Copy> copies_given_up(db::Connection& connection) {
  std::set<Copy> copies;
  for (const auto& row : connection.run(R"(
SELECT m.subject, (m.recipients || m.cc || m.bcc)[t.recipient] FROM tokens t
JOIN mailroom_messages m ON m.id = t.message
JOIN mailroom_deliveries d ON d.token = t.id AND d.state IN ('rejected', 'expired', 'unknown'))"))
    copies.emplace(row[0].c_str(), row[1].c_str());
  return copies;
}

/// The subjects of messages that a newer one with their key has replaced; `is_early`: so long before their
/// time that the transaction was committed by then.
std::set<std::string> replaced_subjects(db::Connection& connection, bool is_early) {
  std::set<std::string> subjects;
  for (const auto& row : connection.run(R"(
SELECT subject FROM mailroom_messages
WHERE replaced_at IS NOT NULL AND (NOT $1 OR replaced_at < send_after - interval '1 s'))",
                                        is_early))
    subjects.insert(row[0].c_str());
  return subjects;
}

std::size_t count_lost(db::Connection& connection, const MessageNotes& notes,
                       const std::map<Copy, std::set<std::int64_t>>& taken) {
  const auto given_up = copies_given_up(connection);
  const auto replaced = replaced_subjects(connection, false);
  std::size_t lost = 0;
  for (const auto& [subject, addresses] : notes.committed) {
    if (notes.cancelled.count(subject) + notes.undecided.count(subject) + replaced.count(subject) > 0)
      continue;
    for (const auto& address : addresses)
      lost += taken.count({subject, address}) + given_up.count({subject, address}) == 0 ? 1 : 0;
  }
  return lost;
}

}  // namespace

std::map<std::pair<std::int64_t, std::string>, std::int64_t> tokens_of_messages(db::Connection& connection) {
  std::map<std::pair<std::int64_t, std::string>, std::int64_t> tokens;
  for (const auto& row : connection.run(R"(
SELECT m.id, (m.recipients || m.cc || m.bcc)[t.recipient], t.id
FROM tokens t JOIN mailroom_messages m ON m.id = t.message)"))
    tokens[{row[0].as<std::int64_t>(), row[1].c_str()}] = row[2].as<std::int64_t>();
  return tokens;
}

MessageTally judge_messages(db::Connection& connection, const MessageNotes& notes,
                            const std::vector<TakenMail>& mails) {
  const auto taken = taken_copies(mails);
  const auto too_early = replaced_subjects(connection, true);
  MessageTally tally{.cancelled = notes.cancelled.size(), .lost = count_lost(connection, notes, taken)};
  for (const auto& [subject, addresses] : notes.committed)
    tally.committed += addresses.size();
  for (const auto& [copy, messages] : taken) {
    const auto& subject = copy.first;
    tally.rolled_back += notes.rolled_back.count(subject);
    tally.revoked += notes.cancelled.count(subject) + too_early.count(subject) > 0 ? 1 : 0;
    tally.twice += messages.size() - 1;
  }
  for (const auto& [subject, ids] : notes.ids)
    tally.twice += ids.size() - 1;
  return tally;
}

}  // namespace mailroom::test
