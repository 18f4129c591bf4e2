// What mailroom requires of triggers and sequences, which may be behind their tables, with the SQL that fixes
// them, and of the tokens that wait for a consumer of CSV or for a sender without a link.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "db/connection.hpp"

namespace mailroom::queue {

/// A sequence that gives the rows of a table their ids. A sequence does not follow its table through a
/// logical replica or a copy of the table, nor through TRUNCATE ... RESTART IDENTITY.
struct TableSequence {
  std::string name;           ///< mailroom_batches_id_seq
  std::string table;          ///< mailroom_batches
  std::int64_t position = 0;  ///< the last id that it gave; 0 if none
  /// The highest id in the table. Of mailroom_gaps also those that the queues list.
  std::int64_t newest = 0;

  bool is_behind() const { return position < newest; }
  /// What fails because it is behind: `every claim fails`.
  std::string consequence() const;
  /// True if only the ids that the sequence gives are used, so that a sequence behind is a fault in any case.
  bool is_of_mailroom() const { return table != "accounts"; }
};

/// Reads the sequences of mailroom's tables and of accounts. Leaves out those that the role may not read, or
/// of whose tables row security hides rows. Runs within the caller's transaction.
std::vector<TableSequence> read_sequences(pqxx::transaction_base& transaction);

/// Sets those of `sequences` that are behind ahead of their tables. Never sets one back. That of tokens has
/// to be ahead of the cursors too.
void advance_sequences(pqxx::transaction_base& transaction, const std::vector<TableSequence>& sequences);

/// Returns statements, one for each sequence of batches and gaps that does not give ids one by one, in order:
/// the newest row of a queue is its state.
std::vector<std::string> statements_for_ordered_ids(db::Connection& connection);

enum class TriggerState { enabled, disabled, missing };

/// A trigger that fires only on replicas counts as disabled.
TriggerState trigger_state(db::Connection& connection, const std::string& table, const std::string& trigger);

/// Throws Error(schema) when the token sequence has reached the largest bigint: no range of ids can end after
/// it.
void require_ids_to_spare(db::Connection& connection);

/// The statement that enables a disabled trigger; `schema` is quoted.
std::string enable_trigger_statement(const std::string& schema, std::string_view table,
                                     std::string_view trigger);

/// True if the token sequence assigns one id at a time, each larger than the previous one.
bool gives_ids_in_order(db::Connection& connection);

/// The statement that makes the token sequence do so.
std::string ids_in_order_statement(db::Connection& connection);

/// The error of a line of CSV for tokens of these actions, by their short names, which have no path: it has
/// no place for what they say.
Error no_place_in_csv(const std::vector<std::string>& actions);

/// Throws no_place_in_csv() if tokens without a signature wait in the queue: above its cursor, in its gaps,
/// or in a batch that another consumer has left.
void require_signed_tokens(db::Connection& connection, const std::string& queue);

/// Throws Error(configuration) if tokens with a signature wait there: their mails have a link, and send.link
/// is not set.
void require_unsigned_tokens(db::Connection& connection, const std::string& queue);

}  // namespace mailroom::queue
