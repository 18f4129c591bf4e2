// Asks for mails over HTTP as SDKs do, to measure who takes them.
#pragma once

#include <cstdint>
#include <string>

namespace mailroom::bench {

/// What a client asks for, over connections that it keeps.
struct Posting {
  int port = 0;  ///< of 127.0.0.1
  std::string key;
  int connections = 1;  ///< each with one request at a time
  std::int64_t mails = 0;
  int bytes = 2048;  ///< of the text of each
};

/// Returns once each mail has its 200. Throws std::runtime_error at another answer, or none for a minute.
void post_mails(const Posting& posting);

}  // namespace mailroom::bench
