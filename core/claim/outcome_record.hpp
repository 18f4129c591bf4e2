// The JSON in which outcomes of deliveries and states of sinks go to the database.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "claim/queue_session.hpp"
#include "db/connection.hpp"

namespace mailroom {

// How what a sink with outcomes reports is written to the database, and read from it.

/// The outcomes as mailroom_receipt takes them, an array of objects; nullopt without outcomes.
std::optional<std::string> outcomes_json(const Receipt& receipt);

/// The states as mailroom_share_sinks() takes them, an array of objects.
std::string sinks_json(const std::vector<SinkState>& states);

/// Reads rows of name, failures, since, failed_at and probe_at, in seconds since 1970, and reason.
std::vector<SinkState> read_sinks(const pqxx::result& rows);

}  // namespace mailroom
