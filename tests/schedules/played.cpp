#include "schedules/played.hpp"

#include <fmt/format.h>

#include "db/errors.hpp"

namespace mailroom::test {
namespace {

ServerFault fault_of(Mishap mishap) {
  if (mishap == Mishap::lost_request) return ServerFault::lost_request;
  return mishap == Mishap::lost_reply ? ServerFault::lost_reply : ServerFault::none;
}

}  // namespace

template <typename Work>
auto PlayedSession::call(Step step, Work work) {
  auto& server = process_.world().server;
  const bool travels = step != Step::notifications;
  const auto mishap = process_.begin(step);
  if (travels) process_.travel();
  server.on_call = [fault = fault_of(mishap)](const Call&) { return fault; };
  auto result = work();
  if (mishap == Mishap::crash_after) throw Crashed{};
  if (travels) process_.travel();
  if (session_ && !server.is_connected(session_->socket()))
    throw db::ConnectionLost("the reply did not come");
  return result;
}

PlayedSession::PlayedSession(Process& process) : process_(process) {
  auto& world = process.world();
  session_ = call(Step::connect, [&] {
    auto session = world.server.connect();
    world.opened(world.server.sessions() - 1, process.life());
    return session;
  });
}

PlayedSession::~PlayedSession() {
  process_.lost_session(socket());
}

claim::ClaimReply PlayedSession::claim(const claim::ClaimRequest& request) {
  return call(Step::claim, [&] { return session_->claim(request); });
}

void PlayedSession::fetch(const claim::Lease& lease,
                          const std::function<void(const claim::TokenRow&)>& each) {
  call(Step::fetch, [&] {
    session_->fetch(lease, each);
    return true;
  });
}

bool PlayedSession::arrange(claim::Waking waking) {
  return call(Step::waking, [&] { return session_->arrange(waking); });
}

claim::Notified PlayedSession::take_notifications() {
  return call(Step::notifications, [&] { return session_->take_notifications(); });
}

void PlayedSession::check_health() {
  call(Step::health, [&] {
    session_->check_health();
    return true;
  });
}

void PlayedEncoder::begin(const claim::Lease& lease) {
  lease_ = lease;
  fetched_ = process_.now();
  ids_.clear();
}

bool PlayedEncoder::add(const claim::TokenRow& row, std::string_view /*token*/) {
  ids_ += fmt::format(" {}", row.id);
  return true;
}

std::string_view PlayedEncoder::finish() {
  const auto mishap = process_.begin(Step::write);
  process_.wait_for_reader();
  process_.world().note(-1, "… line of batch", lease_.batch);
  line_ = fmt::format("{} {} {} {} {}{} end\n", lease_.batch, lease_.attempt, process_.life(),
                      fetched_.time_since_epoch().count(), process_.now().time_since_epoch().count(), ids_);
  if (mishap == Mishap::torn_line) process_.tear(line_);
  return line_;
}

}  // namespace mailroom::test
