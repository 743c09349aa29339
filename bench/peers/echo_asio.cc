// The echo server of bench/server.c on Boost.Asio: one io_context on one kernel thread, call-backs.
// Prints "ADDRESS RUNTIME" when it is ready; ends with its standard input.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>  // Boost 1.74 forgets it

#include <boost/asio.hpp>
#include <boost/version.hpp>
#include <cstdio>
#include <exception>
#include <memory>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(tcp::socket socket) : socket_(std::move(socket)) {
    socket_.set_option(tcp::no_delay(true));
  }

  void read() {
    socket_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](error_code error, size_t got) {
      if (!error) self->write(got);
    });
  }

 private:
  void write(size_t size) {
    asio::async_write(socket_, asio::buffer(buffer_, size),
                      [self = shared_from_this()](error_code error, size_t) {
                        if (!error) self->read();
                      });
  }

  tcp::socket socket_;
  std::array<char, 4096> buffer_;
};

void accept_next(tcp::acceptor& acceptor) {
  acceptor.async_accept([&acceptor](error_code error, tcp::socket socket) {
    if (error) {
      fprintf(stderr, "accept: %s\n", error.message().c_str());
      exit(1);
    }
    std::make_shared<Connection>(std::move(socket))->read();
    accept_next(acceptor);
  });
}

}  // namespace

int main() try {
  asio::io_context context(1);
  tcp::acceptor acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  acceptor.listen(4096);
  accept_next(acceptor);
  asio::posix::stream_descriptor input(context, 0);
  char byte;
  input.async_read_some(asio::buffer(&byte, 1), [&](error_code, size_t) { context.stop(); });
  printf("%d Boost-%d.%d\n", acceptor.local_endpoint().port(), BOOST_VERSION / 100000,
         BOOST_VERSION / 100 % 1000);
  fflush(stdout);
  context.run();
  _exit(0);  // its connections need no order to end in
} catch (const std::exception& error) {
  fprintf(stderr, "%s\n", error.what());
  return 1;
}
