// The checks of doctor for NATS: each server, the stream, and when servers write to disk.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <poll.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "carriers/nats/answer.hpp"
#include "carriers/nats/carrier.hpp"
#include "carriers/nats/connection.hpp"
#include "transfer/handle.hpp"

namespace mailroom::nats {
namespace {

using NatsLevel = carriers::SinkFinding::Level;

/// What servers keep of the ids that they have seen must last as long as a token may be handed over again.
constexpr std::chrono::minutes life_of_tokens{15};

std::string version_of(const config::ServerAddress& server) {
  const auto greeting = try_parse_json(read_nats_greeting(server));
  return text_at(greeting, "version");
}

/// Connects to each server by itself. The first connection that works, if any.
std::unique_ptr<NatsConnection> check_servers(const NatsTarget& target,
                                              std::vector<carriers::SinkFinding>& findings,
                                              std::string& version) {
  std::unique_ptr<NatsConnection> first;
  for (const auto& server : target.url.servers) {
    auto only = target;
    only.url.servers = {server};
    carriers::BrokerFailure failure;
    auto connection = NatsConnection::open(only, nullptr, failure);
    if (connection == nullptr) {
      findings.push_back({NatsLevel::failure, carriers::describe_failure(server.address(), failure),
                          carriers::hint_for(failure.fault)});
      continue;
    }
    const auto its_version = version_of(server);
    findings.push_back(
        {NatsLevel::fine, fmt::format("{} takes connections, NATS {}{}", server.address(),
                                      its_version.empty() ? "of an unknown version" : its_version,
                                      target.requires_tls ? ", over TLS" : "")});
    if (first == nullptr) version = its_version;
    if (first == nullptr) first = std::move(connection);
  }
  // As long as one works, batches are handed over.
  for (auto& finding : findings) {
    if (first != nullptr && finding.level == NatsLevel::failure) finding.level = NatsLevel::warning;
  }
  return first;
}

/// nullopt if the monitoring page does not tell.
std::optional<NatsSync> read_sync(const config::ServerAddress& monitor) {
  const auto page = try_parse_json(read_monitor_page(monitor, "/jsz?config=true"));
  if (!page.is_object() || !page.contains("config") || !page["config"].is_object()) return std::nullopt;
  const auto& config = page["config"];
  return NatsSync{.always = config.value("sync_always", false),
                  .interval = std::chrono::duration_cast<Milliseconds>(
                      std::chrono::nanoseconds(config.value("sync_interval", std::int64_t{0})))};
}

/// Looks at the servers of sink.monitor, and says which do not show it.
std::vector<NatsSync> read_syncs(const config::Settings& settings,
                                 std::vector<carriers::SinkFinding>& findings) {
  std::vector<NatsSync> syncs;
  if (settings.sink.monitor.empty()) return syncs;
  for (const auto& monitor :
       carriers::parse_broker_url(settings.sink.monitor, {{"http", 8222}}, "sink.monitor").servers) {
    if (const auto sync = read_sync(monitor)) {
      syncs.push_back(*sync);
    } else {
      findings.push_back(
          {NatsLevel::warning,
           fmt::format("{}, of sink.monitor, does not show how JetStream is set", monitor.address()),
           "it must be the port that http: or http_port: of a server's configuration names, and reached from here"});
    }
  }
  return syncs;
}

constexpr Milliseconds monitor_patience{2000};
constexpr std::size_t largest_page = 1'000'000;

std::unique_ptr<transfer::Handle> handle_for(const std::string& url) {
  auto handle = std::make_unique<transfer::Handle>();
  handle->set(CURLOPT_URL, url.c_str());
  handle->set(CURLOPT_TIMEOUT_MS, static_cast<long>(monitor_patience.count()));
  return handle;
}

std::size_t keep_page(char* bytes, std::size_t size, std::size_t count, void* page) {
  auto& text = *static_cast<std::string*>(page);
  if (text.size() + size * count > largest_page) return 0;
  text.append(bytes, size * count);
  return size * count;
}

/// The first line that the receiver says after the connection is made; empty if it says none in time.
std::string first_line(CURL* handle) {
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, &socket);
  const auto until = steady_now() + monitor_patience;
  std::string text;
  while (text.find("\r\n") == std::string::npos && text.size() < largest_page) {
    std::array<char, 4096> part{};
    std::size_t size = 0;
    const auto result = curl_easy_recv(handle, part.data(), part.size(), &size);
    text.append(part.data(), size);
    if (result == CURLE_AGAIN) {
      const auto left = std::chrono::ceil<Milliseconds>(until - steady_now()).count();
      pollfd readable{socket, POLLIN, 0};
      if (left <= 0 || poll(&readable, 1, static_cast<int>(left)) < 0) return {};
    } else if (result != CURLE_OK || size == 0) {
      return {};
    }
  }
  return text.substr(0, text.find("\r\n"));
}

/// The subjects of which queues the stream does not take.
void judge_subjects(const NatsStream& stream, const config::Settings& settings,
                    std::vector<carriers::SinkFinding>& findings) {
  for (const auto& queue : settings.collect.queues) {
    const auto refused = subjects_refused(stream, settings.sink.subject, queue);
    if (refused.empty()) continue;
    const bool takes_none = subjects_taken(stream, settings.sink.subject, queue).empty();
    findings.push_back(
        {takes_none ? NatsLevel::failure : NatsLevel::warning,
         fmt::format("the stream {} does not take {}", settings.sink.stream, joined(refused, ", ")),
         "add these subjects to the stream, or change sink.subject"});
  }
}

}  // namespace

std::vector<carriers::SinkFinding> judge_nats_stream(const NatsStream& stream,
                                                     const config::Settings& settings) {
  const auto& name = settings.sink.stream;
  std::vector<carriers::SinkFinding> findings;
  const auto warn = [&](const std::string& reason, std::string hint) {
    findings.push_back({NatsLevel::warning, fmt::format("the stream {} {}", name, reason), std::move(hint)});
  };
  const auto warn_and_change = [&](const std::string& reason, const char* option) {
    findings.push_back(
        {NatsLevel::warning, fmt::format("the stream {} {}", name, reason),
         fmt::format("nats stream edit {} {} changes it; nats is NATS's own tool, and docs/nats.md "
                     "shows how to do without it",
                     name, option)});
  };
  if (stream.has_no_ack) {
    findings.push_back({NatsLevel::failure, fmt::format("the stream {} acknowledges nothing", name),
                        "make it anew, without --no-ack"});
  }
  judge_subjects(stream, settings, findings);
  if (stream.replicas < 3) {
    warn_and_change(fmt::format("has {}: batches are lost with a server",
                                stream.replicas == 1 ? "one replica" : "two replicas"),
                    "--replicas 3");
  } else if (stream.online < stream.replicas) {
    warn(fmt::format("has {} of its {} replicas", stream.online, stream.replicas),
         "start the servers that are down");
  }
  if (stream.in_memory)
    warn("is in memory: batches are lost when its servers restart", "make it anew, with --storage file");
  if (stream.is_work_queue) {
    warn("removes what was read: after a restart of all servers it does not recognise that again",
         "make it anew, with --retention limits");
  }
  if (stream.duplicate_window < life_of_tokens) {
    warn_and_change(
        fmt::format(
            "recognises repetitions for {}, and tokens live for {}: a batch that is handed over again later "
            "is there twice",
            format_duration(stream.duplicate_window), format_duration(life_of_tokens)),
        "--dupe-window 1h");
  }
  const bool is_limited = stream.max_messages > 0 || stream.max_bytes > 0;
  if (is_limited && stream.discards_old) {
    warn_and_change("drops its oldest batches, read or not, when it is full", "--discard new");
  }
  if (stream.max_age > Milliseconds{} && stream.max_age < life_of_tokens)
    warn_and_change(fmt::format("drops batches after {}, read or not", format_duration(stream.max_age)),
                    "--max-age 24h");
  return findings;
}

carriers::SinkFinding judge_nats_sync(const std::string& version, const std::vector<NatsSync>& syncs,
                                      std::size_t servers) {
  const bool is_always = !syncs.empty() && std::ranges::all_of(syncs, &NatsSync::always);
  if (is_always && syncs.size() >= servers)
    return {NatsLevel::fine,
            "an acknowledgement means that a majority of the replicas has the batch on disk"};
  if (is_always) {
    return {
        NatsLevel::fine,
        fmt::format("an acknowledgement means that a majority of the replicas has the batch on disk, if "
                    "sync_interval is always on all servers: it is on the {} of {} that sink.monitor names",
                    syncs.size(), servers),
        "name the monitoring ports of all servers in sink.monitor, separated by commas"};
  }
  const bool is_old = version.starts_with("2.9.") || version.starts_with("2.8.");
  if (syncs.empty() && !is_old) {
    return {
        NatsLevel::fine,
        "an acknowledgement means that a majority of the replicas has the batch in memory, unless sync_interval "
        "is always, which clients cannot see",
        "name the monitoring ports of the servers in sink.monitor, and doctor looks there"};
  }
  Milliseconds longest{};
  for (const auto& sync : syncs)
    longest = std::max(longest, sync.always ? Milliseconds{} : sync.interval);
  return {
      NatsLevel::warning,
      fmt::format(
          "an acknowledgement means that a majority of the replicas has the batch in memory, not on disk: "
          "{} later; batches of that time are lost if all servers lose power at once",
          longest > Milliseconds{} ? "up to " + format_duration(longest) : "up to 2m"),
      is_old
          ? "put the servers where they do not lose power together; NATS 2.10 and later have sync_interval: always"
          : "put the servers where they do not lose power together, or set sync_interval: always in the "
            "jetstream block of each, which takes most of their speed"};
}

std::vector<carriers::SinkFinding> check_nats(const config::Settings& settings) {
  const auto target = read_nats_target(settings);
  std::vector<carriers::SinkFinding> findings;
  std::string version;
  const auto connection = check_servers(target, findings, version);
  if (connection == nullptr) return findings;
  const auto stream = read_nats_stream(*connection, settings.sink.stream);
  if (!stream.exists) {
    const auto hint = stream.failure.fault == carriers::BrokerFault::missing
                          ? nats_stream_hint(settings)
                          : std::string("start the other servers of the cluster");
    findings.push_back(
        {NatsLevel::failure, fmt::format("sink.stream cannot be used: {}", stream.failure.text), hint});
    return findings;
  }
  auto judged = judge_nats_stream(stream, settings);
  if (judged.empty()) {
    judged.push_back(
        {NatsLevel::fine,
         fmt::format("the stream {} has {} replicas, and recognises repetitions for {}", settings.sink.stream,
                     stream.replicas, format_duration(stream.duplicate_window))});
  }
  findings.insert(findings.end(), judged.begin(), judged.end());
  const auto syncs = read_syncs(settings, findings);
  findings.push_back(judge_nats_sync(version, syncs, target.url.servers.size()));
  return findings;
}

std::string read_nats_greeting(const config::ServerAddress& server) {
  const auto handle = handle_for("http://" + server.address());
  handle->set(CURLOPT_CONNECT_ONLY, 1L);
  if (curl_easy_perform(handle->get()) != CURLE_OK) return {};
  const auto line = first_line(handle->get());
  constexpr std::string_view before = "INFO ";
  return line.starts_with(before) ? line.substr(before.size()) : std::string();
}

std::string read_monitor_page(const config::ServerAddress& server, const std::string& path) {
  const auto handle = handle_for("http://" + server.address() + path);
  std::string page;
  handle->set(CURLOPT_WRITEFUNCTION, &keep_page);
  handle->set(CURLOPT_WRITEDATA, static_cast<void*>(&page));
  return curl_easy_perform(handle->get()) == CURLE_OK ? page : std::string();
}

}  // namespace mailroom::nats
