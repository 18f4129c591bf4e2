// A database whose mails leave by a relay, and mailroom bounce on it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/finished_run.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test {

struct BounceRig : DeliveryRig {
  TestRelay relay;
  TemporaryDirectory directory;
  std::map<std::string, std::string> environment{{"MAILROOM_DATABASE_URL", database.conninfo()},
                                                 {"MAILROOM_SECRET_KEY", std::string(64, 'a')},
                                                 {"MAILROOM_SEND_FROM", "no-reply@app.example"},
                                                 {"MAILROOM_SEND_RELAY", relay.url()},
                                                 {"MAILROOM_SEND_BOUNCE_ADDRESS", "bounce+{id}@app.example"}};

  BounceRig() : DeliveryRig(0) {
    for (const auto* part : {"new", "cur", "tmp"})
      std::filesystem::create_directories(directory.path() / part);
  }
  FinishedRun run(std::vector<std::string> words) {
    words.insert(words.begin(), mailroom_binary);
    return run_to_end(words, environment);
  }
  /// Mails a message to the address, and returns the envelope sender that it left with; empty if none left.
  std::string mail(const std::string& to) {
    const auto before = relay.taken().size();
    connection->run("SELECT mailroom_send(ARRAY[$1], subject => 'x', text => 'y')", to);
    const auto sent = run({"send", "--once"});
    INFO(sent.errors);
    const auto taken = relay.taken();
    return taken.size() == before ? std::string() : taken.back().from;
  }
  std::string read(const std::string& report) {
    return run({"bounce", directory.write("report", report)}).output;
  }
  std::string state_of(const std::string& to) {
    return value<std::string>(
        *connection,
        "SELECT d.state || ' ' || coalesce(d.reply, '') FROM mailroom_deliveries d JOIN tokens t ON t.id = "
        "d.token JOIN mailroom_messages m ON m.id = t.message WHERE m.recipients[1] = '" +
            to + "' ORDER BY d.token DESC LIMIT 1");
  }
};

}  // namespace mailroom::test
