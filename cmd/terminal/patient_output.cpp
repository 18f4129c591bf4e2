// Waits until the reader takes more or a signal comes, then writes as much as cannot block.

#include "cmd/terminal/patient_output.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <poll.h>

namespace mailroom {

void PatientOutput::write(std::string_view bytes) {
  // A pipe that is ready for writing takes PIPE_BUF bytes without blocking.
  while (!bytes.empty() && wait_for_reader()) {
    const auto part = bytes.substr(0, PIPE_BUF);
    output_.write(part);
    bytes.remove_prefix(part.size());
  }
}

bool PatientOutput::wait_for_reader() {
  for (;;) {
    // After a stop request, only what can be written without waiting is written.
    const bool stopping = signal_.requested();
    std::array<pollfd, 2> watched{{{output_.fd(), POLLOUT, 0}, {signal_.fd(), POLLIN, 0}}};
    const int ready = poll(watched.data(), watched.size(), stopping ? 0 : 1000);
    if (watched[0].revents != 0) return true;
    if (stopping) return false;
    if (watched[1].revents != 0) signal_.drain();
    if (ready == 0) while_waiting_();
  }
}

}  // namespace mailroom
