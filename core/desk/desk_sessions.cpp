// Sessions are found by a digest of their secret, and end when they are next asked for or looked over.

#include "desk/desk_sessions.hpp"

#include <algorithm>
#include <array>
#include <openssl/rand.h>
#include <utility>

#include "crypto/base64.hpp"
#include "crypto/digest.hpp"

namespace mailroom::desk {

std::string new_desk_secret() {
  std::array<std::uint8_t, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    crypto::throw_openssl_error("draw a random number");
  std::string text(crypto::base64url_length(bytes.size()), '\0');
  crypto::encode_base64url(bytes, text);
  return text;
}

bool DeskSessions::is_late(const DeskSession& session, TimePoint now) const {
  return now - session.used_at >= limits_.idle || now - session.since >= limits_.longest;
}

void DeskSessions::make_room(const std::string& role) {
  const auto is_of_role = [&](const auto& each) { return each.second->role == role; };
  while (static_cast<std::size_t>(std::ranges::count_if(sessions_, is_of_role)) >= limits_.sessions_of_role) {
    auto oldest = std::ranges::find_if(sessions_, is_of_role);
    for (auto each = oldest; each != sessions_.end(); ++each) {
      if (is_of_role(*each) && each->second->since < oldest->second->since) oldest = each;
    }
    sessions_.erase(oldest);
  }
}

std::string DeskSessions::open(std::shared_ptr<DeskSession> session, TimePoint now) {
  auto secret = new_desk_secret();
  session->since = now;
  session->used_at = now;
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [&](const auto& each) { return is_late(*each.second, now); });
  make_room(session->role);
  if (sessions_.size() >= limits_.sessions) return {};
  sessions_.emplace(crypto::sha256({secret}), std::move(session));
  return secret;
}

std::shared_ptr<DeskSession> DeskSessions::find(std::string_view secret, TimePoint now) {
  if (secret.empty()) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(crypto::sha256({secret}));
  if (found == sessions_.end()) return nullptr;
  if (is_late(*found->second, now)) {
    sessions_.erase(found);
    return nullptr;
  }
  found->second->used_at = now;
  return found->second;
}

void DeskSessions::end(std::string_view secret) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(crypto::sha256({secret}));
}

void DeskSessions::end_session(const DeskSession& session) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [&](const auto& each) { return each.second.get() == &session; });
}

void DeskSessions::end_late(TimePoint now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [&](const auto& each) { return is_late(*each.second, now); });
}

std::size_t DeskSessions::size() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

}  // namespace mailroom::desk
