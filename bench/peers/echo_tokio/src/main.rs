//! The echo server of bench/server.c on Tokio: a task for each connection on one kernel thread.
//! Prints "ADDRESS RUNTIME" when it is ready; ends with its standard input.
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const TOKIO: &str = "tokio-1.38.2";

async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0u8; 4096];
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..n]).await?;
    }
}

async fn accept_all() -> std::io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{} {}", listener.local_addr()?.port(), TOKIO);
    std::io::stdout().flush()?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream));
    }
}

fn main() -> std::io::Result<()> {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0u8; 1]);
        std::process::exit(0);
    });
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(accept_all())
}
