// The checks of doctor for RabbitMQ, with definitions to import as the fix for a queue that is missing.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/wording.hpp"
#include "carriers/amqp/carrier.hpp"

namespace mailroom::amqp {
namespace {

using AmqpLevel = carriers::SinkFinding::Level;

/// The queues that the default exchange leads the lines of these settings to. One for each queue of mailroom,
/// unless the routing key names the action: not every queue has tokens of every action.
std::vector<std::string> named_queues(const config::Settings& settings) {
  std::vector<std::string> names;
  if (settings.sink.routing_key.find("{action}") != std::string::npos) return names;
  for (const auto& queue : settings.collect.queues)
    names.push_back(carriers::filled_name(settings.sink.routing_key, queue, {}));
  return names;
}

/// Needs no plugin of the server, and no user. From a file that the user rabbitmq can read, as which
/// rabbitmqctl runs: RabbitMQ 4.0.5 waits for ever for its standard input (rabbitmq-server issue 13157).
status::Fix making_of(const std::string& name, const std::string& vhost) {
  const auto json = [](const std::string& text) {
    auto quoted = json_text(nlohmann::ordered_json(text));
    for (auto at = quoted.find('\''); at != std::string::npos; at = quoted.find('\''))
      quoted.replace(at, 1, "\\u0027");
    return quoted;
  };
  return {status::FixKind::import_definitions,
          fmt::format(R"(file=$(mktemp) && chmod a+r "$file" && printf '%s' )"
                      R"('{{"queues": [{{"name": {}, "vhost": {}, "durable": true, "auto_delete": false, )"
                      R"("arguments": {{"x-queue-type": "quorum"}}}}]}}' >"$file" && )"
                      R"(rabbitmqctl import_definitions "$file" && rm "$file")",
                      json(name), json(vhost))};
}

carriers::SinkFinding other_kind(const std::string& name, const std::string& vhost, std::string reason) {
  return {
      AmqpLevel::warning,
      std::move(reason),
      "name another queue in sink.routing_key, or make this one anew when it is empty, on one of RabbitMQ's servers",
      {{status::FixKind::import_definitions, fmt::format("rabbitmqctl delete_queue {} --if-empty --vhost {}",
                                                         shell_word(name), shell_word(vhost))},
       making_of(name, vhost)}};
}

carriers::SinkFinding judge_queue(AmqpConnection& connection, const std::string& name,
                                  const std::string& vhost) {
  const auto refusal = connection.compare_with_quorum_queue(name);
  const auto said = shown_text(refusal.text);
  if (refusal.code == 0) {
    return {AmqpLevel::fine,
            fmt::format(
                "the queue {} is a quorum queue: a confirmation means that a majority of its members has the "
                "batch on disk",
                name),
            fmt::format("rabbitmq-queues quorum_status {} --vhost {} shows, on one of its servers, how many "
                        "members it has",
                        shell_word(name), shell_word(vhost))};
  }
  const bool differs = refusal.code == AMQP_PRECONDITION_FAILED;
  if (differs && refusal.text.find("x-queue-type") != std::string::npos) {
    return other_kind(
        name, vhost,
        fmt::format("the queue {} is no quorum queue: its batches are lost with its server", name));
  }
  if (differs && refusal.text.find("'durable'") != std::string::npos) {
    return other_kind(
        name, vhost,
        fmt::format("the queue {} is not durable: its batches are lost when its server restarts", name));
  }
  return {AmqpLevel::fine,
          fmt::format("the queue {} exists; whether it is a quorum queue cannot be seen: {}", name, said)};
}

}  // namespace

std::vector<carriers::SinkFinding> check_amqp_names(AmqpConnection& connection,
                                                    const config::Settings& settings,
                                                    const std::string& vhost) {
  std::vector<carriers::SinkFinding> findings;
  const auto look = [&](const AmqpRefusal& refusal, const std::string& what, const std::string& hint,
                        std::vector<status::Fix> fix) {
    if (refusal.code == AMQP_NOT_FOUND) {
      findings.push_back({AmqpLevel::failure, fmt::format("there is no {}", what), hint, std::move(fix)});
    } else if (refusal.code != 0) {
      findings.push_back({AmqpLevel::warning,
                          fmt::format("the {} cannot be seen: {}", what, shown_text(refusal.text)),
                          "ask the operator of the broker whether it exists"});
    }
  };
  const auto& exchange = settings.sink.exchange;
  if (!exchange.empty()) {
    look(connection.find_exchange(exchange), fmt::format("exchange {}", exchange),
         "make it, with a quorum queue bound to it, or name another in sink.exchange", {});
    return findings;
  }
  for (const auto& name : named_queues(settings)) {
    look(connection.find_queue(name), fmt::format("queue {}", name),
         "name another in sink.routing_key, or make it, on one of RabbitMQ's servers",
         {making_of(name, vhost)});
  }
  return findings;
}

std::vector<carriers::SinkFinding> check_amqp(const config::Settings& settings) {
  const auto target = read_amqp_target(settings);
  std::vector<carriers::SinkFinding> findings;
  std::unique_ptr<AmqpConnection> first;
  for (const auto& server : target.url.servers) {
    carriers::BrokerFailure failure;
    auto connection = AmqpConnection::open(target, server, failure);
    if (connection == nullptr) {
      findings.push_back({AmqpLevel::failure, carriers::describe_failure(server.address(), failure),
                          carriers::hint_for(failure.fault)});
      continue;
    }
    findings.push_back(
        {AmqpLevel::fine, fmt::format("{} takes connections, {}{}", server.address(), connection->product(),
                                      target.has_tls ? ", over TLS" : "")});
    if (first == nullptr) first = std::move(connection);
  }
  if (first == nullptr) return findings;
  // As long as one works, batches are handed over.
  for (auto& finding : findings) {
    if (finding.level == AmqpLevel::failure) finding.level = AmqpLevel::warning;
  }
  auto named = check_amqp_names(*first, settings, target.vhost);
  if (!named.empty()) {
    findings.insert(findings.end(), named.begin(), named.end());
  } else if (!settings.sink.exchange.empty()) {
    findings.push_back({AmqpLevel::fine,
                        fmt::format("the exchange {} exists; to which queues it leads cannot be seen",
                                    settings.sink.exchange),
                        "bind a quorum queue to it: a batch that no queue takes is not emitted"});
  } else {
    for (const auto& name : named_queues(settings))
      findings.push_back(judge_queue(*first, name, target.vhost));
  }
  return findings;
}

}  // namespace mailroom::amqp
