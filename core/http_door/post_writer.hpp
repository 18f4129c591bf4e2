// Stores the mails of one role that come over HTTP, many requests by one commit.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "http_door/keyed_session.hpp"
#include "http_door/shape.hpp"
#include "submission/group_writer.hpp"

namespace mailroom::http_door {

/// What a thread that speaks with the database tells the one that speaks with clients.
struct Verdict {
  std::uint64_t request = 0;
  std::variant<Answer, Fault> what{};
  std::size_t stored = 0;                    ///< mails
  std::optional<Credentials> credentials{};  ///< of a key that was looked up
  bool is_about_key = false;
  bool is_about_files = false;
  std::shared_ptr<Post> fetched{};  ///< whose files have come: it is to be stored
  /// Of a role that has, or had, one: what the answers say from now on.
  bool has_rate = false;
  std::optional<RoleRate> rate{};
};
using Tell = std::function<void(Verdict)>;

/// A request that asks for mails.
struct PostWork : submission::GroupWork {
  std::uint64_t request = 0;
  Credentials credentials{};
  Post post{};
  std::string mails{};  ///< of `post`, as the database gets them
  bool has_own_key = false;
  bool may_be_stored = false;  ///< an attempt had no answer
};

/// What all writers share.
struct WriterSetting {
  submission::DatabaseAccess access{};
  const Shape& shape;
  Tell tell{};
  Log& log;
  std::atomic<std::int64_t>& commits;
};

class PostWriter {
 public:
  PostWriter(const WriterSetting& setting, const std::string& role);
  void add(PostWork work) { writer_.add(std::move(work)); }
  bool is_idle_for(Milliseconds time) const { return writer_.is_idle_for(time); }

 private:
  submission::GroupWriter<PostWork> writer_;
};

/// The work of a request whose key is that of the request, or `own_key`, so that it can be run again.
PostWork make_work(std::uint64_t request, const Credentials& credentials, Post post,
                   const std::string& own_key);

}  // namespace mailroom::http_door
