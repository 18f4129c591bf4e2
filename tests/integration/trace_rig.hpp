// A database whose mails leave by a relay, and a collector of traces that is told of them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "handover/webhook_process.hpp"
#include "integration/bounce_rig.hpp"
#include "support/catch.hpp"

namespace mailroom::test {

using SpanJson = nlohmann::json;

inline const std::string trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
inline const std::string parent_id = "00f067aa0ba902b7";
inline const std::string traceparent = "00-" + trace_id + "-" + parent_id + "-01";

inline std::string attribute(const SpanJson& span, const std::string& key) {
  for (const auto& each : span["attributes"]) {
    if (each["key"] != key) continue;
    const auto& value = each["value"];
    return value.contains("intValue") ? plain_json(value["intValue"])
                                      : value["stringValue"].get<std::string>();
  }
  return {};
}

/// A database whose mails leave by a relay, and a collector of traces.
struct TraceRig : BounceRig {
  ServerProcess traces;

  explicit TraceRig(const std::string& mode = "ok") : traces("trace_server.py", mode) {
    environment["MAILROOM_TRACE_ENDPOINT"] = traces.url("");
  }
  std::string bytes() const {
    return std::filesystem::exists(traces.taken()) ? read_file(traces.taken()) : std::string();
  }
  std::vector<SpanJson> spans() const {
    std::vector<SpanJson> all;
    std::istringstream lines(bytes());
    for (std::string line; std::getline(lines, line);) {
      const auto request = parse_json(line);
      for (const auto& span : request["resourceSpans"][0]["scopeSpans"][0]["spans"])
        all.push_back(span);
    }
    return all;
  }
  std::vector<SpanJson> spans(const std::string& name) const {
    auto all = spans();
    std::erase_if(all, [&](const auto& span) {
      return !span["name"].template get<std::string>().starts_with(name + " ");
    });
    return all;
  }
  SpanJson span(const std::string& name) const {
    const auto found = spans(name);
    CAPTURE(name, bytes());
    REQUIRE(found.size() == 1);
    return found.front();
  }
  FinishedRun send() {
    auto sent = run({"send", "--once"});
    INFO(sent.errors);
    CHECK(sent.status == 0);
    return sent;
  }
  std::string column(const std::string& sql) { return value<std::string>(*connection, sql); }
};

inline void insert_message(db::Connection& connection, const std::string& options) {
  connection.run(
      "SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 'x', text => 'y', options => $1::jsonb)",
      options);
}

}  // namespace mailroom::test
