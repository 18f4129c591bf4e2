// The people whose tokens have an outcome: who they are, where they were mailed, and why.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "selection/selection.hpp"

namespace mailroom::reconcile {

/// A token, whose it is, and what became of it in a queue.
struct TokenOfPerson {
  std::string queue{};
  std::int64_t token = 0;
  std::optional<std::int64_t> account{};  ///< nullopt: it has none
  std::string login{};                    ///< empty if the account was deleted
  std::string
      address{};  ///< that it was mailed to; without a mail on record, that of the recipient or the account
  std::string action{};
  Moment created_at{};
  fate::Outcome outcome = fate::Outcome::unexplained;
  std::optional<Moment> at{};  ///< of the last answer, or when a batch or a claim ended; nullopt if unknown
  std::string reason{};        ///< may be empty
  int code = 0;                ///< of the last answer; 0 for none
  std::string reply{};         ///< likewise
  std::optional<std::int64_t> message{};  ///< that made the token
  std::string reference{};                ///< of the application; empty for none
  int perhaps = 0;  ///< how many attempts may have been accepted, besides one that was for certain
};

using OnPeople = std::function<void(const std::vector<TokenOfPerson>&)>;

/// A token, and how the judge explains what became of it.
struct JudgedToken {
  std::int64_t id = 0;
  fate::Outcome outcome = fate::Outcome::unexplained;
  std::string explanation{};
  std::int64_t at =
      0;  ///< when its batch ended or a claim passed it, in microseconds since 1970; 0 if unknown
};

/// Looks up whose tokens are, those that match a selection, some thousands at a time.
class PeopleReader {
 public:
  PeopleReader(pqxx::transaction_base& transaction, std::string queue, const selection::Selection& selection,
               const OnPeople& on_people)
      : transaction_(transaction), queue_(std::move(queue)), selection_(selection), on_people_(on_people) {}

  void add(JudgedToken token);
  /// After the last token.
  void finish();

 private:
  pqxx::transaction_base& transaction_;
  std::string queue_;
  const selection::Selection& selection_;
  const OnPeople& on_people_;
  std::vector<JudgedToken> tokens_{};
};

}  // namespace mailroom::reconcile
