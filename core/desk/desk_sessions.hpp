// Who has signed in, and until when. A session is a session of PostgreSQL, so that no password is kept and no
// right is mailroom's to check.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "crypto/hmac.hpp"
#include "db/connection.hpp"
#include "desk/desk_rights.hpp"

namespace mailroom::desk {

struct DeskSession {
  std::string role{};
  DeskRights rights{};
  std::string csrf{};  ///< which each form of a page has
  std::unique_ptr<db::Connection> connection{};
  std::mutex mutex{};   ///< of the connection: a request at a time
  TimePoint since{};    ///< of the sign-in
  TimePoint used_at{};  ///< guarded by DeskSessions

  /// Who did it, in the record of what is changed.
  std::string actor() const { return role + "@desk"; }
};

struct DeskLimits {
  Milliseconds idle{};
  Milliseconds longest{};
  std::size_t sessions = 40;  ///< each is a session of PostgreSQL
  std::size_t sessions_of_role = 10;
};

/// For several threads.
class DeskSessions {
 public:
  explicit DeskSessions(const DeskLimits& limits) : limits_(limits) {}

  /// Returns the secret that names the session; empty if there are too many. The oldest of a role with too
  /// many ends.
  std::string open(std::shared_ptr<DeskSession> session, TimePoint now);
  /// Null for one that is none, or has ended.
  std::shared_ptr<DeskSession> find(std::string_view secret, TimePoint now);
  void end(std::string_view secret);
  void end_session(const DeskSession& session);
  /// Ends those whose time is over.
  void end_late(TimePoint now);
  std::size_t size() const;

 private:
  using Sessions = std::map<crypto::Digest, std::shared_ptr<DeskSession>>;

  bool is_late(const DeskSession& session, TimePoint now) const;
  void make_room(const std::string& role);

  DeskLimits limits_;
  mutable std::mutex mutex_;
  Sessions sessions_;  ///< by the digest of the secret: a search tells nothing of a secret
};

/// 32 random bytes, as base64url.
std::string new_desk_secret();

}  // namespace mailroom::desk
