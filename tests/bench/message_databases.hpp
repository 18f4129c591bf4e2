#pragma once

#include "bench/databases.hpp"

namespace mailroom::bench {

/// SQL of a text of 2 kB that hardly compresses, another for each `number`.
std::string body_of(const std::string& number);
/// A text of 2 kB without quotes.
std::string body_literal();

/// Backlogs of due tokens with bodies of 2 kB.
Backlog half_messages(Stage& stage);  ///< 30,000, every second of a message
Backlog all_messages(Stage& stage);   ///< 20,000
/// 20,000 messages with bodies of 50 kB.
Backlog large_messages(Stage& stage);
/// 30,000 tokens of accounts beside a million messages that are scheduled for tomorrow.
Backlog tokens_beside_schedule(Stage& stage);

/// 100,000 messages without tokens; returns the name of the database.
std::string waiting_messages(Stage& stage);
/// Makes all of them due again; returns how many.
std::int64_t schedule_again(Stage& stage, const std::string& database);

}  // namespace mailroom::bench
