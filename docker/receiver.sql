-- Run once, when the server's folder is made: what the receiver keeps is its
-- own.
CREATE DATABASE postrider_receiver;
