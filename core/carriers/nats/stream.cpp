// Asks JetStream how a stream is configured, and how many of its replicas are there.

#include <fmt/format.h>
#include <memory>

#include "carriers/nats/connection.hpp"

namespace mailroom::nats {

NatsStream read_nats_stream(NatsConnection& connection, const std::string& name) {
  NatsStream stream;
  jsStreamInfo* read = nullptr;
  jsErrCode code{};
  const auto status = js_GetStreamInfo(&read, connection.jetstream(), name.c_str(), nullptr, &code);
  const std::unique_ptr<jsStreamInfo, decltype(&jsStreamInfo_Destroy)> info(read, jsStreamInfo_Destroy);
  if (status != NATS_OK) {
    const bool is_missing = code == JSStreamNotFoundErr;
    const bool is_off = code == JSNotEnabledErr || code == JSNotEnabledForAccountErr;
    stream.failure.fault = is_missing ? carriers::BrokerFault::missing
                           : is_off   ? carriers::BrokerFault::refused
                                      : carriers::BrokerFault::unreachable;
    stream.failure.text = is_missing ? fmt::format("there is no stream {}", name)
                          : is_off   ? "JetStream is not enabled there"
                          : status == NATS_NO_RESPONDERS
                              ? "JetStream does not answer: it is not enabled there, or has no leader"
                              : nats_error_text(status);
    return stream;
  }
  const auto& config = *info->Config;
  const auto milliseconds = [](std::int64_t nanoseconds) {
    return std::chrono::duration_cast<Milliseconds>(std::chrono::nanoseconds(nanoseconds));
  };
  stream.exists = true;
  stream.subjects.assign(config.Subjects, config.Subjects + config.SubjectsLen);
  stream.replicas = static_cast<int>(config.Replicas);
  stream.online = 1;
  for (int i = 0; info->Cluster != nullptr && i < info->Cluster->ReplicasLen; ++i) {
    if (!info->Cluster->Replicas[i]->Offline) ++stream.online;
  }
  stream.in_memory = config.Storage == js_MemoryStorage;
  stream.is_work_queue = config.Retention != js_LimitsPolicy;
  stream.discards_old = config.Discard == js_DiscardOld;
  stream.has_no_ack = config.NoAck;
  stream.duplicate_window = milliseconds(config.Duplicates);
  stream.max_age = milliseconds(config.MaxAge);
  stream.max_messages = config.MaxMsgs;
  stream.max_bytes = config.MaxBytes;
  stream.max_message_size = config.MaxMsgSize;
  return stream;
}

}  // namespace mailroom::nats
